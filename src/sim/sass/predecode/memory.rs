//! Predecodes loads, stores, atomics, constant loads and memory ordering.
//!
//! Ordering instructions (fences, DEPBAR, cache control) become no-ops, since simulated memory is
//! sequentially consistent.

use super::super::super::ops::format::{BF16, F16, F32, F64};
use super::super::super::ops::tensor_map::GATHERED;
use super::super::bulk::Bulk;
use super::super::cluster::Remote;
use super::super::code::{Access, AtomicOp, AtomicType, Exec, From, Space, Src};
use super::super::mbarrier::{Act, Number};
use super::super::tensor::{Mode, Tensor};
use super::operands::{BANK_MASK, Builder, Kind};
use crate::arrays::Each;
use crate::sass::ArgKind;
use crate::tables::{Op, Role};

pub(super) const ATOMICS: [(&str, AtomicOp); 12] = [
    ("CAST", AtomicOp::CasFlag),
    ("POPC", AtomicOp::PopcInc),
    ("ADD", AtomicOp::Add),
    ("MIN", AtomicOp::Min),
    ("MAX", AtomicOp::Max),
    ("INC", AtomicOp::Inc),
    ("DEC", AtomicOp::Dec),
    ("AND", AtomicOp::And),
    ("OR", AtomicOp::Or),
    ("XOR", AtomicOp::Xor),
    ("EXCH", AtomicOp::Exch),
    ("CAS", AtomicOp::Cas),
];

/// Predecodes an opcode; `None` if it belongs to another family.
///
/// # Errors
///
/// A modifier or operand that the simulator does not implement.
pub fn build(b: &mut Builder) -> Result<Option<Exec>, String> {
    let access = access(b);
    Ok(Some(match b.lifted.inst.op {
        Op::LDG => load(b, Space::Global, access)?,
        // One device has the only copy.
        Op::LDGMC => load(b, Space::Global, joined(b))?,
        Op::LD => load(b, Space::Generic, access)?,
        Op::LDS => load(b, Space::Shared, access)?,
        Op::LDL => load(b, Space::Local, access)?,
        Op::STG => store(b, Space::Global, access)?,
        Op::ST => store(b, Space::Generic, access)?,
        Op::STS => store(b, Space::Shared, access)?,
        Op::STL => store(b, Space::Local, access)?,
        Op::USTGR | Op::UREDGR => for_all(b, access)?,
        Op::ATOMG | Op::RED => atomic(b, Space::Global)?,
        Op::ATOM => atomic(b, Space::Generic)?,
        Op::ATOMS => atomic(b, Space::Shared)?,
        Op::LDC | Op::ULDC | Op::LDCU => constant(b, access)?,
        Op::QSPC => {
            address(b, Space::Generic)?;
            let spaces = [("S", Space::Shared), ("L", Space::Local), ("G", Space::Global), ("D", Space::Shared)];
            Exec::InSpace { space: b.lifted.words.pick(&spaces).unwrap_or(Space::Global), cluster: b.has("D") }
        }
        Op::LDG_256 => {
            address(b, Space::Global)?;
            let mask = if b.arg(Role::Mask).is_none() { u8::MAX } else { b.imm(Role::Mask) as u8 };
            Exec::LoadWide { high: b.dst(Role::E)?, mask }
        }
        Op::STG_256 => {
            address(b, Space::Global)?;
            b.code.b = b.src(Role::B, false, Kind::Int)?;
            b.code.c = b.src(Role::C, false, Kind::Int)?;
            Exec::StoreWide
        }
        Op::LDGSTS => {
            address(b, Space::Global)?;
            b.code.c = b.src(Role::S, false, Kind::Int)?;
            Exec::CopyAsync { bytes: access.bytes, offset: b.imm(Role::Soff) as i32, fill: b.has("ZFILL") }
        }
        Op::SYNCS_EXCH | Op::SYNCS_ARRIVE | Op::SYNCS_PHASECHK | Op::SYNCS_CCTL | Op::ARRIVES | Op::ATOMS_ARRIVE => {
            Exec::Mbarrier(mbarrier(b)?)
        }
        Op::USYNCS_ARRIVE | Op::USYNCS_PHASECHK => Exec::Mbarrier(mbarrier(b)?),
        Op::UBLKCP | Op::UBLKRED => Exec::Bulk(bulk(b)?),
        Op::STAS | Op::REDAS => Exec::Remote(remote(b)?),
        Op::UGETNEXTWORKID => {
            b.code.a = b.src(Role::A, true, Kind::Int)?;
            Exec::Cancel { all: b.has("BROADCAST") }
        }
        Op::UTMALDG | Op::UTMALST | Op::UTMREDG => Exec::Tensor(tensor(b)?),
        Op::TEX | Op::TLD | Op::TLD4 | Op::TXD => Exec::Sample(super::texture::sample(b)?),
        Op::TXQ => Exec::Query(super::texture::query(b)?),
        Op::SULD | Op::SUST | Op::SURED => Exec::Surface(super::texture::surface(b)?),
        Op::MEMSET => {
            address(b, Space::Shared)?;
            b.code.b = b.src(Role::B, false, Kind::Int)?;
            Exec::Clear
        }
        Op::UTMAPF | Op::UTMACCTL => {
            b.code.b = b.src(if b.lifted.inst.op == Op::UTMAPF { Role::B } else { Role::A }, true, Kind::Int)?;
            Exec::Nop
        }
        Op::SYNCS_CCTL_ALL | Op::UBLKPF | Op::UTMACMDFLUSH => Exec::Nop,
        Op::RPCMOV => {
            b.code.a = b.src(Role::A, false, Kind::Int)?;
            Exec::PairMove { high: b.has("Rpc.HI"), store: !b.arg(Role::A).is_none() }
        }
        Op::FENCE_G | Op::FENCE_S => Exec::Nop,
        Op::MEMBAR | Op::ERRBAR | Op::CGAERRBAR | Op::CCTL | Op::CCTLL | Op::DEPBAR | Op::LDGDEPBAR => Exec::Nop,
        _ => return Ok(None),
    }))
}

/// A copy or a reduction in bulk.
fn bulk(b: &mut Builder) -> Result<Bulk, String> {
    // Two words of one kind: where to, and where from.
    let way: Vec<&str> = b.lifted.words.iter().filter(|(kind, _)| *kind == "bulk_way").map(|(_, word)| word).collect();
    let [to_global, from_global] = [way.first(), way.last()].each(|word| word == Some(&"G"));
    b.code.a = b.src(Role::A, true, Kind::Int)?;
    b.code.b = b.src(Role::B, from_global, Kind::Int)?;
    // A mask of 32 blocks is above the word of the size.
    let wide = b.has("MULTICAST32");
    b.code.c = b.src(Role::C, wide, Kind::Int)?;
    b.code.ub = b.src(Role::E, true, Kind::Int)?;
    let types = [
        ("S32", AtomicType::Signed(4)),
        ("U64", AtomicType::Unsigned(8)),
        ("S64", AtomicType::Signed(8)),
        ("F16", AtomicType::Float(F16)),
        ("BF16", AtomicType::Float(BF16)),
        ("F32", AtomicType::Float(F32)),
        ("F64", AtomicType::Float(F64)),
    ];
    let ty = b.lifted.words.pick(&types).unwrap_or(AtomicType::Unsigned(4));
    let op = b.lifted.words.pick(&ATOMICS).unwrap_or(AtomicOp::Add);
    let reduces = (b.lifted.inst.op == Op::UBLKRED).then_some((op, ty));
    let (masked, multicast) = (b.has("DST_G_BYTE_MASK"), b.has("MULTICAST"));
    Ok(Bulk { to_global, from_global, reduces, masked, multicast, wide })
}

/// A store or a reduction in a block of the cluster.
fn remote(b: &mut Builder) -> Result<Remote, String> {
    b.code.a = b.src(Role::A, true, Kind::Int)?;
    b.code.off = b.imm(Role::Off) as i32 as i64;
    let bytes = b.lifted.words.pick(&[("64", 8), ("128", 16)]).unwrap_or(4);
    b.code.b = b.src(Role::B, bytes == 8, Kind::Int)?;
    if b.lifted.inst.op == Op::STAS {
        return Ok(Remote { bytes, reduces: None });
    }
    let ty = if b.has("S32") { AtomicType::Signed(4) } else { AtomicType::Unsigned(bytes) };
    Ok(Remote { bytes, reduces: Some((b.lifted.words.pick(&ATOMICS).unwrap_or(AtomicOp::Add), ty)) })
}

/// A copy or a reduction of a box of a tensor.
fn tensor(b: &mut Builder) -> Result<Tensor, String> {
    let modes = ["W", "W128"];
    if let Some(mode) = modes.into_iter().find(|mode| b.has(mode)) {
        return Err(format!("the simulator does not copy tensors with .{mode}"));
    }
    let op = b.lifted.inst.op;
    b.code.a = b.src(Role::A, true, Kind::Int)?;
    b.code.b = b.src(Role::B, true, Kind::Int)?;
    b.code.ub = b.src(Role::E, true, Kind::Int)?;
    // The first word of a kind is not among the modifiers.
    let dimensions = b.lifted.words.pick(&[("2D", 2), ("3D", 3), ("4D", 4), ("5D", 5)]).unwrap_or(1);
    let reduces = (op == Op::UTMREDG).then(|| b.lifted.words.pick(&ATOMICS).unwrap_or(AtomicOp::Add));
    let (multicast, wide, loads) = (b.has("MULTICAST"), b.has("MULTICAST32"), op == Op::UTMALDG);
    let mode = match () {
        () if b.has("IM2COL") => Mode::Pixels { offsets: loads },
        () if b.has("GATHER4") || b.has("SCATTER4") => Mode::Rows,
        () => Mode::Tile,
    };
    let offsets = mode == (Mode::Pixels { offsets: true });
    if multicast || wide || offsets {
        b.code.c = b.src(Role::C, wide && offsets, Kind::Int)?;
    }
    let coordinates = if mode == Mode::Rows { GATHERED as u8 } else { dimensions };
    let pair = b.has("2CTA");
    Ok(Tensor { loads, coordinates, mode, reduces, multicast, wide, pair })
}

/// What an instruction does to a barrier in shared memory.
fn mbarrier(b: &mut Builder) -> Result<Act, String> {
    let op = b.lifted.inst.op;
    address(b, Space::Shared)?;
    if op == Op::SYNCS_EXCH {
        b.code.b = b.src(Role::B, true, Kind::Int)?;
        return Ok(Act::Exchange);
    }
    if matches!(op, Op::SYNCS_ARRIVE | Op::SYNCS_PHASECHK) {
        b.code.b = b.src(Role::B, false, Kind::Int)?;
    }
    if matches!(op, Op::USYNCS_ARRIVE | Op::USYNCS_PHASECHK) {
        // The number is in the register after the address.
        b.code.b = Src { from: From::UReg(b.arg(Role::A).val as u8 + 1), ..Src::default() };
        if b.has("MULTICAST") {
            b.code.c = b.src(Role::C, false, Kind::Int)?;
        }
        if b.has("CONDITIONAL") {
            return Err(format!("the simulator does not execute {} with a report", op.info().text));
        }
    }
    use Number::{Lanes, None, One, Operand};
    let (copies, several) = (op == Op::ARRIVES, b.has("MULTICAST"));
    let arrive = |(arrivals, expect, complete), drops, together| Act::Arrive {
        arrivals,
        expect,
        complete,
        drops,
        together,
        copies,
        several,
    };
    Ok(match op {
        Op::SYNCS_PHASECHK | Op::USYNCS_PHASECHK => Act::Check,
        Op::SYNCS_ARRIVE | Op::USYNCS_ARRIVE => {
            let counts = [
                ("A1T0", (One, None, None)),
                ("A0T1", (None, One, None)),
                ("A0TR", (None, Operand, None)),
                ("A0TX", (None, None, Operand)),
                ("ART0", (Operand, None, None)),
                ("ACT0", (Lanes, None, None)),
            ];
            arrive(b.lifted.words.pick(&counts).unwrap_or((One, Operand, None)), b.has("OPTOUT"), b.has("TMASK"))
        }
        Op::ARRIVES if b.has("TRANSCNT") => arrive((None, None, One), false, false),
        Op::ARRIVES if b.has("ARVCNT") => arrive((One, None, None), false, false),
        Op::ARRIVES | Op::ATOMS_ARRIVE => Act::ArriveOld { copies },
        _ => Act::End,
    })
}

fn access(b: &Builder) -> Access {
    let strong = b.has("STRONG");
    let of = |bytes, signed| Access { bytes, signed, strong };
    let list = [
        ("U8", of(1, false)),
        ("S8", of(1, true)),
        ("U16", of(2, false)),
        ("S16", of(2, true)),
        ("64", of(8, false)),
        ("128", of(16, false)),
        ("256", of(32, false)),
    ];
    b.lifted.words.pick(&list).unwrap_or(of(4, false))
}

/// What LDGMC loads.
fn joined(b: &Builder) -> Access {
    let words = [("64", 8), ("S64", 8), ("F64", 8), ("F16x4", 8), ("BF16x4", 8), ("F32x2", 8), ("E5M2x8", 8)];
    let more = [("E4M3x8", 8), ("F16x8", 16), ("BF16x8", 16), ("F32x4", 16), ("E5M2x16", 16), ("E4M3x16", 16)];
    let bytes = b.lifted.words.pick(&words).or(b.lifted.words.pick(&more)).unwrap_or(4);
    Access { bytes, signed: false, strong: false }
}

/// Reads the address operands: a register of one or two words with a scale, a uniform register, an
/// offset. All that the simulator asks of a descriptor is that no call has changed it.
fn address(b: &mut Builder, space: Space) -> Result<(), String> {
    let long = b.has("E") && matches!(space, Space::Global | Space::Generic);
    let narrow = b.has("U32");
    b.code.a = b.src(Role::A, long && !narrow, Kind::Int)?;
    b.code.ub = match b.arg(Role::Ub).kind {
        ArgKind::None => Src { wide: long, ..Src::default() },
        _ => b.src(Role::Ub, long, Kind::Int)?,
    };
    b.code.desc = (b.arg(Role::Desc).kind == ArgKind::UReg).then(|| b.arg(Role::Desc).val as u8);
    b.code.off = b.imm(Role::Off) as i64;
    b.code.scale = b.lifted.words.pick(&[("X4", 4), ("X8", 8), ("X16", 16)]).unwrap_or(1);
    Ok(())
}

fn load(b: &mut Builder, space: Space, access: Access) -> Result<Exec, String> {
    address(b, space)?;
    Ok(Exec::Load { space, access })
}

fn store(b: &mut Builder, space: Space, access: Access) -> Result<Exec, String> {
    address(b, space)?;
    b.code.b = b.src(Role::B, false, Kind::Int)?;
    Ok(Exec::Store { space, access })
}

/// A store or a sum that a warp does once, for all its lanes.
fn for_all(b: &mut Builder, access: Access) -> Result<Exec, String> {
    b.code.a = b.src(Role::A, true, Kind::Int)?;
    b.code.ub = Src { wide: true, ..Src::default() };
    b.code.off = b.imm(Role::Off) as i64;
    b.code.b = b.src(Role::B, b.has("64"), Kind::Int)?;
    if b.lifted.inst.op == Op::USTGR {
        return Ok(Exec::Store { space: Space::Global, access });
    }
    let types = [("64", AtomicType::Unsigned(8)), ("S32", AtomicType::Signed(4))];
    let ty = b.lifted.words.pick(&types).unwrap_or(AtomicType::Unsigned(4));
    Ok(Exec::Atomic { space: Space::Global, op: AtomicOp::Add, ty })
}

fn atomic(b: &mut Builder, space: Space) -> Result<Exec, String> {
    address(b, space)?;
    let op = b.lifted.words.pick(&ATOMICS).unwrap_or(AtomicOp::Add);
    if let Some(word) = ["SAFEADD"].into_iter().find(|word| b.has(word)) {
        return Err(format!("the simulator does not execute {}.{word}", b.lifted.inst.op.info().text));
    }
    let types = [
        ("F32", AtomicType::Float(F32)),
        ("F64", AtomicType::Float(F64)),
        ("F16x2", AtomicType::Packed(F16)),
        ("BF16x2", AtomicType::Packed(BF16)),
        ("BF16_V2", AtomicType::Packed(BF16)),
        ("F32x2", AtomicType::Lanes(F32, 2)),
        ("F32x4", AtomicType::Lanes(F32, 4)),
        ("F16x4", AtomicType::Lanes(F16, 4)),
        ("F16x8", AtomicType::Lanes(F16, 8)),
        ("BF16x4", AtomicType::Lanes(BF16, 4)),
        ("BF16x8", AtomicType::Lanes(BF16, 8)),
        ("128", AtomicType::Unsigned(16)),
        ("S64", AtomicType::Signed(8)),
        ("64", AtomicType::Unsigned(8)),
        ("U64", AtomicType::Unsigned(8)),
        ("S32", AtomicType::Signed(4)),
    ];
    let ty = b.lifted.words.pick(&types).unwrap_or(AtomicType::Unsigned(4));
    let kept = matches!(ty, AtomicType::Float(F32) | AtomicType::Lanes(F32, _)) && !b.has("FTZ");
    let op = if kept && op == AtomicOp::Add { AtomicOp::AddKept } else { op };
    let wide = super::super::atomic::bytes(ty) == 8;
    b.code.b = b.src(Role::B, wide, Kind::Int)?;
    b.code.c = b.src(Role::C, wide, Kind::Int)?;
    Ok(Exec::Atomic { space, op, ty })
}

fn constant(b: &mut Builder, access: Access) -> Result<Exec, String> {
    let c = b.arg(Role::C);
    if c.kind != ArgKind::Const {
        return Err(format!("the simulator does not execute {} from a {:?}", b.lifted.inst.op.info().text, c.kind));
    }
    if let Some(word) = ["IL", "IS", "ISL"].into_iter().find(|word| b.has(word)) {
        return Err(format!("the simulator does not execute LDC.{word}"));
    }
    b.code.a = b.src(Role::A, false, Kind::Int)?;
    let indexed = !matches!(b.code.a.from, From::Value(_));
    b.code.off = if indexed { c.val as i64 } else { i64::from(c.val as u32 & BANK_MASK) };
    Ok(Exec::LoadConst { bank: c.bank, access })
}
