//! Predecodes control flow, barriers, special registers and operations across lanes.

use super::super::code::{Exec, Gather, Pred, Redux, Shuffle, Special, Vote};
use super::super::warp::Apart;
use super::operands::{Builder, Kind};
use crate::sass::ArgKind;
use crate::tables::{Op, Role};

const SPECIALS: [(&str, Special); 37] = [
    ("SRZ", Special::Zero),
    ("SR_LANEID", Special::LaneId),
    ("SR_VIRTID", Special::WarpId),
    ("SR_VIRTUALSMID", Special::SmId),
    ("SR_TID", Special::TidPacked),
    ("SR_TID.X", Special::Tid(0)),
    ("SR_TID.Y", Special::Tid(1)),
    ("SR_TID.Z", Special::Tid(2)),
    ("SR_CTAID.X", Special::Ctaid(0)),
    ("SR_CTAID.Y", Special::Ctaid(1)),
    ("SR_CTAID.Z", Special::Ctaid(2)),
    ("SR_NCTAID.X", Special::GridDim(0)),
    ("SR_NCTAID.Y", Special::GridDim(1)),
    ("SR_NCTAID.Z", Special::GridDim(2)),
    ("SR_EQMASK", Special::EqMask),
    ("SR_LTMASK", Special::LtMask),
    ("SR_LEMASK", Special::LeMask),
    ("SR_GTMASK", Special::GtMask),
    ("SR_GEMASK", Special::GeMask),
    ("SR_CLOCKLO", Special::ClockLo),
    ("SR_CLOCKHI", Special::ClockHi),
    ("SR_PM0", Special::ClockLo),
    ("SR_PM1", Special::ClockLo),
    ("SR_PM2", Special::ClockLo),
    ("SR_PM3", Special::ClockLo),
    ("SR_PM4", Special::ClockLo),
    ("SR_PM5", Special::ClockLo),
    ("SR_PM6", Special::ClockLo),
    ("SR_PM7", Special::ClockLo),
    ("SR_GLOBALTIMERLO", Special::ClockLo),
    ("SR_GLOBALTIMERHI", Special::ClockHi),
    ("SR_CgaCtaId", Special::CtaInCluster),
    ("SR_SWINHI", Special::SharedWindowHigh),
    ("SR_SMEMSZ", Special::SharedSize),
    ("SR_VIRTCFG", Special::WarpCount),
    // The simulator has the constants of clusters at their plain offsets.
    ("SR_CgaSize", Special::Zero),
    // The lowest address of local memory that the stack may use.
    ("SR_LMEMHIOFF", Special::Zero),
];
const REDUXES: [(&str, Redux); 4] = [("SUM", Redux::Add), ("OR", Redux::Or), ("XOR", Redux::Xor), ("AND", Redux::And)];

/// Predecodes an opcode; `None` if it belongs to another family.
///
/// # Errors
///
/// A modifier or operand that the simulator does not implement.
pub fn build(b: &mut Builder) -> Result<Option<Exec>, String> {
    if let Some(exec) = branches(b)? {
        return Ok(Some(exec));
    }
    if let Some(exec) = convergence(b)? {
        return Ok(Some(exec));
    }
    if let Some(exec) = across_lanes(b)? {
        return Ok(Some(exec));
    }
    Ok(Some(match b.lifted.inst.op {
        Op::NOP | Op::NANOSLEEP | Op::WARPGROUP | Op::PREEXIT | Op::ACQBLK | Op::PMTRIG => Exec::Nop,
        Op::S2R | Op::S2UR | Op::CS2R_32 => special(b, false)?,
        Op::CS2R_64 => special(b, true)?,
        Op::CS2UR => special(b, !b.has("32"))?,
        Op::BAR | Op::BAR_INDEXED => block_barrier(b)?,
        Op::B2R => Exec::BarrierResult,
        Op::CGABAR_ARV => Exec::ClusterArrive,
        Op::CGABAR_WAIT => Exec::ClusterWait,
        Op::SETMAXREG => Exec::MaxRegisters { count: b.imm(Role::A) as u16, takes: b.has("TRY_ALLOC") },
        _ => return Ok(None),
    }))
}

fn special(b: &mut Builder, wide: bool) -> Result<Exec, String> {
    let name = b.lifted.special.as_str();
    let found = SPECIALS.iter().find(|(text, _)| *text == name);
    let which = found.map(|(_, which)| *which).ok_or_else(|| format!("the simulator has no {name}"))?;
    Ok(Exec::Special { which, wide })
}

fn branches(b: &mut Builder) -> Result<Option<Exec>, String> {
    Ok(Some(match b.lifted.inst.op {
        Op::BRA | Op::JMP if b.has("DIV") || b.has("CONV") => {
            b.code.a = b.src(Role::Ub, false, Kind::Int)?;
            Exec::BranchMask { target: b.target()?, diverged: b.has("DIV"), all: b.arg(Role::Ub).is_none() }
        }
        // A predicate of the lanes beside a uniform one that is true.
        Op::BRA if b.code.pq != Pred::TRUE => {
            if b.code.pp.index != Pred::TRUE.index || b.code.pp.not {
                return Err("the simulator does not execute BRA.U with two predicates".to_string());
            }
            b.code.pp = b.code.pq;
            Exec::BranchAll { target: b.target()? }
        }
        Op::BRA if b.has("ANY") => Exec::BranchAny { target: b.target()? },
        Op::BRA => Exec::Branch { target: b.target()?, uniform: b.has("U") },
        Op::CALL if b.arg(Role::A).is_none() && !b.has("ABS") => Exec::Branch { target: b.target()?, uniform: false },
        // An absolute call: no register, and the whole address as an immediate.
        Op::CALL if b.arg(Role::A).is_none() => {
            b.code.a = b.src(Role::A, true, Kind::Int)?;
            Exec::BranchIndirect { base: b.imm(Role::Target) as i64, absolute: true }
        }
        Op::CALL => {
            b.code.a = b.src(Role::A, true, Kind::Int)?;
            Exec::BranchIndirect { base: relative(b, Role::Target), absolute: b.has("ABS") }
        }
        Op::RET => {
            b.code.a = b.src(Role::A, true, Kind::Int)?;
            Exec::BranchIndirect { base: relative(b, Role::Target), absolute: b.has("ABS") }
        }
        Op::BRX | Op::BRXU | Op::JMX => {
            b.code.a = b.src(Role::A, true, Kind::Int)?;
            let absolute = b.lifted.inst.op == Op::JMX;
            let role = if b.arg(Role::Off).is_none() { Role::Target } else { Role::Off };
            let base = if absolute { b.imm(role) as i64 } else { b.next.wrapping_add(b.imm(role)) as i64 };
            Exec::BranchIndirect { base, absolute }
        }
        Op::EXIT => Exec::Exit,
        Op::KILL => Exec::Kill,
        // BPT without another word means TRAP.
        Op::BPT if !["PAUSE", "PAUSE_QUIET", "INT", "DRAIN"].iter().any(|word| b.has(word)) => Exec::Trap,
        Op::BPT => return Err("a breakpoint".to_string()),
        // Without a target it returns its own address.
        Op::LEPC if b.arg(Role::Target).is_none() => Exec::CodeAddress { offset: b.next - 16 },
        Op::LEPC => Exec::CodeAddress { offset: b.next.wrapping_add(b.imm(Role::Target)) },
        _ => return Ok(None),
    }))
}

/// The offset that is added to the register of an indirect jump: that of the label if it is
/// relative, else 0.
fn relative(b: &Builder, role: Role) -> i64 {
    let label = b.arg(role);
    if b.has("ABS") || label.is_none() { 0 } else { b.next.wrapping_add(label.val) as i64 }
}

fn convergence(b: &mut Builder) -> Result<Option<Exec>, String> {
    let bar = (b.imm(Role::B) & 15) as u8;
    Ok(Some(match b.lifted.inst.op {
        Op::BSSY => Exec::Bssy { bar },
        Op::BSYNC => Exec::Bsync { bar },
        Op::BREAK => Exec::Break { bar },
        Op::BMOV_B => {
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            Exec::BarFromReg { bar }
        }
        Op::BMOV => Exec::BarFromBar { bar: (b.imm(Role::D) & 15) as u8, from: bar },
        Op::BMOV_B_STATE | Op::BMOV_STATE_B => {
            if b.lifted.words.kind("warp_state") != Some("MACTIVE") {
                return Err("the simulator moves only MACTIVE to and from barriers".to_string());
            }
            match b.lifted.inst.op {
                Op::BMOV_B_STATE => Exec::BarFromState { bar },
                _ => Exec::StateFromBar { bar, squares: b.has("PQUAD") },
            }
        }
        Op::BMOV_STATE | Op::BMOV_STATE_R => {
            let active = match b.lifted.words.kind("warp_state") {
                Some("MACTIVE") => true,
                Some("MEXITED") => false,
                other => return Err(format!("the simulator does not know the state {other:?}")),
            };
            if b.lifted.inst.op == Op::BMOV_STATE_R {
                return Ok(Some(Exec::StateToReg { active }));
            }
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            Exec::StateFromReg { active }
        }
        Op::BMOV_R => Exec::RegFromBar { bar, clear: b.has("CLEAR") },
        Op::WARPSYNC => {
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            let apart = match (b.has("COLLECTIVE"), b.has("EXCLUSIVE")) {
                (true, _) => Some(Apart::Section),
                (false, true) => Some(Apart::Interleaved),
                (false, false) => None,
            };
            Exec::WarpSync { all: b.has("ALL"), apart }
        }
        Op::ENDCOLLECTIVE => Exec::EndCollective,
        Op::YIELD => Exec::Yield,
        _ => return Ok(None),
    }))
}

fn block_barrier(b: &mut Builder) -> Result<Exec, String> {
    let gathers = [("POPC", Gather::Popc), ("AND", Gather::And), ("OR", Gather::Or)];
    // Absent words have defaults: SYNC, and POPC for a reduction.
    let gather = if b.has("RED") { b.lifted.words.pick(&gathers).unwrap_or(Gather::Popc) } else { Gather::None };
    if b.has("SCAN") {
        return Err("the simulator does not execute BAR.SCAN".to_string());
    }
    b.code.a = b.src(Role::A, false, Kind::Int)?;
    b.code.b = b.src(Role::B, false, Kind::Int)?;
    // One register holds both number and count; nvdisasm prints it once or, in the form with two
    // operands, twice.
    let packed = b.arg(Role::A).kind == ArgKind::Reg && [ArgKind::None, ArgKind::Reg].contains(&b.arg(Role::B).kind);
    Ok(Exec::BlockBarrier { arrive_only: b.has("ARV"), gather, packed })
}

/// Signs of the two words of a sum in a lane of a square, in the order of their numbers: plus,
/// minus or zero.
const SIGNS: [[u8; 2]; 4] = [*b"PP", *b"PN", *b"NP", *b"ZP"];

fn across_lanes(b: &mut Builder) -> Result<Option<Exec>, String> {
    let modes = [("UP", Shuffle::Up), ("DOWN", Shuffle::Down), ("BFLY", Shuffle::Bfly)];
    let votes = [("ANY", Vote::Any), ("EQ", Vote::Eq)];
    let wide = b.has("U64");
    b.code.a = match b.lifted.inst.op {
        Op::SHFL | Op::MATCH | Op::REDUX | Op::CREDUX | Op::FSWZADD | Op::MOV => b.src(Role::A, wide, Kind::Int)?,
        _ => b.code.a,
    };
    Ok(Some(match b.lifted.inst.op {
        Op::SHFL => {
            b.code.b = b.src(Role::B, false, Kind::Int)?;
            b.code.c = b.src(Role::C, false, Kind::Int)?;
            Exec::Shuffle(b.lifted.words.pick(&modes).unwrap_or(Shuffle::Idx))
        }
        Op::FSWZADD => {
            b.code.b = b.src(Role::B, false, Kind::Int)?;
            let signs = b.lifted.words.kind("quad_signs").unwrap_or_default().as_bytes().chunks(2);
            let code = |pair: &[u8]| SIGNS.iter().position(|signs| signs.as_slice() == pair).unwrap_or(0) as u8;
            Exec::SquareAdd { signs: signs.fold(0, |all, pair| all << 2 | code(pair)) }
        }
        Op::MOV => Exec::SquareMove { lanes: b.imm(Role::Lanes) as u8 },
        Op::VOTE | Op::VOTEU => Exec::Vote(b.lifted.words.pick(&votes).unwrap_or(Vote::All)),
        Op::MATCH => Exec::Match { all: !b.has("ANY") },
        Op::REDUX | Op::CREDUX if b.has("F32") => {
            let (min, abs) = (b.has("MIN") || b.has("MINABS"), b.has("MINABS") || b.has("MAXABS"));
            Exec::Redux(Redux::Float { min, abs, nan: b.has("NAN") })
        }
        Op::REDUX | Op::CREDUX => {
            let signed = b.has("S32");
            Exec::Redux(match (b.has("MIN"), b.has("MAX")) {
                (true, _) => Redux::Min(signed),
                (_, true) => Redux::Max(signed),
                _ => b.lifted.words.pick(&REDUXES).unwrap_or(Redux::And),
            })
        }
        Op::ELECT => Exec::Elect,
        Op::R2UR => {
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            let or = b.has("OR");
            b.code.pp = if or { b.code.pu } else { Pred::FALSE };
            Exec::Spread
        }
        _ => return Ok(None),
    }))
}
