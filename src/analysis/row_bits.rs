//! Bits of words that may differ between the lanes of a warp whose threads are in one row of their
//! block.
//!
//! A warp is 32 threads with consecutive numbers. Where the block has one row, or rows of whole
//! warps, as `.reqntid` says, the lanes of a warp differ in the lowest five bits of `%tid.x` alone;
//! `%tid.x >> 5` and `%tid.x & 96` are the same in all of them. Only words that are made of thread
//! numbers and constants are followed.

use crate::analysis::bit_flow::{carries_up, of};
use crate::ori::cfg::Cfg;
use crate::ori::{Function, InstId, Kind, VReg, table, table_of};
use crate::tables::encoding::special_row_bits;
use crate::tables::ori::Direction;
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Of each register the bits that may differ.
pub type RowBits = SecondaryMap<VReg, u32>;

/// Of each register the bits that may differ; `None` where warps need not be in one row.
pub fn analyse(function: &Function, cfg: &Cfg) -> Option<RowBits> {
    function.attributes().rows.then(|| {
        let mut bits: RowBits = table_of(function.regs().len(), u32::MAX);
        // Of a register with several definitions nothing is known, also where it is read before
        // the later ones.
        let mut definitions: SecondaryMap<VReg, u32> = table(function.regs().len());
        let insts = || cfg.rpo.iter().flat_map(|block| &function[*block]);
        insts().for_each(|inst| function.for_each_def(*inst, |reg| definitions[reg] += 1));
        for inst in insts() {
            let made = result(function, &bits, *inst);
            function.for_each_def(*inst, |reg| {
                bits[reg] = made.filter(|_| definitions[reg] == 1).unwrap_or(u32::MAX);
            });
        }
        bits
    })
}

/// The bits of its one result; `None` where nothing is known of them.
fn result(function: &Function, bits: &RowBits, inst: InstId) -> Option<u32> {
    let data = &function[inst];
    let followed = data.guard.is_null() && (data.op.has(Prop::Pure) || data.op == Op::COPY);
    if let Kind::Special(number) = function.arg(inst, Role::S).kind() {
        return special_row_bits(number).filter(|_| data.guard.is_null());
    }
    function.arg(inst, Role::D).as_reg().filter(|_| followed)?;
    let mut sources: SmallVec<[(Role, u32); 4]> = SmallVec::new();
    for (at, operand) in function.args(inst).iter().enumerate() {
        if function.direction(inst, at) != Direction::Use {
            continue;
        }
        let Some(reg) = operand.as_reg() else {
            // Of what is in vectors nothing is known.
            if operand.as_vector().is_some_and(|vector| !function.vector_regs(vector).is_empty()) {
                return None;
            }
            continue;
        };
        match bits[reg] {
            u32::MAX => return None,
            0 => {}
            some => sources.push((data.op.info().roles[at].role, some)),
        }
    }
    if carries_up(function, inst) {
        let all = sources.iter().fold(0, |all, (_, bits)| all | bits);
        return Some(u32::MAX.checked_shl(all.trailing_zeros()).unwrap_or(0));
    }
    let differ = |some: u32| {
        let depend = |(role, bits): &(Role, u32)| of(function, inst, *role, some) & bits != 0;
        sources.iter().any(depend)
    };
    let mut all = 0;
    // A bit depends on nothing that its byte does not depend on.
    for byte in (0..u32::BITS).step_by(8).filter(|byte| differ(0xff << byte)) {
        (byte..byte + 8).filter(|bit| differ(1 << bit)).for_each(|bit| all |= 1 << bit);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use cranelift_entity::EntityRef;

    const TEXT: &str = "function k sm_90 ssa rows
b0:
  S2R d=r0 s=s33
  S2R d=r1 s=s34
  LOP3 d=r2 a=r0 b=0x60 c=Z lut=0xc0
  SHF{dir=R itype=U32 hi=HI} d=r3 a=Z b=0x4 c=r0
  LOP3 d=r4 a=r3 b=0x6 c=r1 lut=0xea
  IADD3 d=r5 a=r3 b=0x10 c=Z
  LDG{e=E} d=r6 a={r4,r5} off=0x0
  STG{e=E} a={r4,r5} off=0x0 b=r6
  EXIT
";

    #[test]
    fn thread_numbers_differ_in_five_bits() {
        let mut function = text::parse(TEXT).unwrap();
        let cfg = Cfg::new(&function);
        let bits = analyse(&function, &cfg).unwrap();
        let of = |reg: usize| bits[VReg::new(reg)];
        assert_eq!([of(0), of(1), of(2), of(3), of(4)], [0x1f, 0, 0, 1, 0]);
        // A carry may go up from the bit that differs; nothing is known of what is loaded.
        assert_eq!([of(5), of(6)], [u32::MAX, u32::MAX]);
        function.attributes_mut().rows = false;
        assert!(analyse(&function, &cfg).is_none());
    }

    const LOOP: &str = "function k sm_90 rows
b0:
  MOV d=r0 a=Z
  LDG{e=E} d=r3 a={r4,r5} off=0x0
  BRA target=b1
b1:
  IADD3 d=r1 a=r0 b=0x1 c=Z
  MOV d=r0 a=r1
  ISETP{cmp=LT} pu=p2 a=r1 b=r3
  @p2 BRA target=b1
  BRA target=b2
b2:
  STG{e=E} a={r4,r5} off=0x0 b=r1
  EXIT
";

    /// What goes round a loop that lanes leave at different turns may differ.
    #[test]
    fn nothing_is_known_of_loop_counters() {
        let function = text::parse(LOOP).unwrap();
        let bits = analyse(&function, &Cfg::new(&function)).unwrap();
        assert_eq!([0, 1].map(|reg| bits[VReg::new(reg)]), [u32::MAX; 2]);
    }
}
