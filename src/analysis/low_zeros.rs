//! Low bits of words that are known to be zero: powers of two of which addresses are multiples.
//!
//! Optimistic: words begin as zero and lose bits until nothing changes, so a pointer that a loop
//! advances by 64 keeps what it begins with. At most [`MOST`] definitions are followed from the
//! word in question; nothing is known of what lies beyond.

use super::bit_flow::lut;
use super::def_use::DefUse;
use crate::arrays::Each;
use crate::ori::hash::QuickMap;
use crate::ori::{Convention, Function, InstId, Kind, Operand, VReg};
use crate::tables::{Mod, Op, Prop, Role, value};
use smallvec::SmallVec;

/// Definitions that are followed at most.
const MOST: usize = 32;
/// Zero bits of zero.
const ALL: u32 = u32::BITS;
/// Zero bits of the stack pointer in a kernel: its frame is a multiple of 16 bytes. Source: as
/// `stack_align` of lowering's layout.
const KERNEL_STACK: u32 = 4;
/// As [`KERNEL_STACK`], in a function: the frames of its callers in other compilers' objects are
/// multiples of 8 bytes.
const CALLED_STACK: u32 = 3;

/// The number of low bits that are zero in a word of a function in SSA form.
pub fn of(function: &Function, def_use: &DefUse, word: VReg) -> u32 {
    let mut slice = Slice { function, def_use, words: SmallVec::new(), places: QuickMap::default() };
    slice.place(word);
    let mut at = 0;
    while at < slice.words.len() {
        let (word, _) = slice.words[at];
        let sources = slice.definition(word).map(|inst| sources(function, inst)).unwrap_or_default();
        sources.into_iter().for_each(|source| slice.place(source));
        at += 1;
    }
    let mut changed = true;
    while changed {
        changed = false;
        for at in 0..slice.words.len() {
            let (word, before) = slice.words[at];
            let now = slice.zeros(word).min(before);
            changed |= now != before;
            slice.words[at].1 = now;
        }
    }
    slice.words[0].1
}

/// Words that one is made of, with the zero bits that they may still have.
struct Slice<'a> {
    function: &'a Function,
    def_use: &'a DefUse,
    words: SmallVec<[(VReg, u32); MOST]>,
    places: QuickMap<VReg, usize>,
}

/// The registers that an instruction reads, where its result may be known.
fn sources(function: &Function, inst: InstId) -> SmallVec<[VReg; 8]> {
    let mut read = SmallVec::new();
    if is_followed(function[inst].op) {
        function.for_each_use(inst, |reg| read.push(reg));
    }
    read
}

fn is_followed(op: Op) -> bool {
    op == Op::PHI || op.has(Prop::Copies) || op.has(Prop::Pure)
}

impl Slice<'_> {
    fn place(&mut self, word: VReg) {
        if self.words.len() < MOST && !self.places.contains_key(&word) {
            self.places.insert(word, self.words.len());
            self.words.push((word, ALL));
        }
    }

    fn definition(&self, word: VReg) -> Option<InstId> {
        let inst = self.def_use.definition(word)?;
        let mut results = SmallVec::<[VReg; 4]>::new();
        self.function.for_each_reg(self.function.arg(inst, Role::D), |reg| results.push(reg));
        (self.function[inst].guard.is_null() && results.first() == Some(&word)).then_some(inst)
    }

    /// The zero bits of a word by those of its sources.
    fn zeros(&self, word: VReg) -> u32 {
        if self.function.stack_pointer() == Some(word) {
            return match self.function.attributes().convention {
                Convention::Kernel => KERNEL_STACK,
                Convention::Device | Convention::SlowPath => CALLED_STACK,
            };
        }
        self.definition(word).filter(|inst| is_followed(self.function[*inst].op)).map_or(0, |inst| self.result(inst))
    }

    fn result(&self, inst: InstId) -> u32 {
        let data = &self.function[inst];
        let [a, b, c] = [Role::A, Role::B, Role::C].each(|role| self.operand(self.function.arg(inst, role)));
        let carries = data.mods.get(Mod::X) == value::x::X;
        let high = data.mods.get(Mod::Hi) != 0;
        let count = |role| self.function.word_value(self.function.arg(inst, role)).filter(|count| *count < u32::BITS);
        match data.op {
            Op::PHI => {
                let mut least = ALL;
                self.function.for_each_use(inst, |reg| least = least.min(self.known(reg)));
                least
            }
            op if op.has(Prop::Copies) && self.function.arg(inst, Role::Lanes).is_null() => a,
            Op::SEL => a.min(b),
            Op::IADD3 if !carries => a.min(b).min(c),
            Op::IMAD if !carries => (a + b).min(c),
            Op::IMAD_WIDE => (a + b).min(c),
            Op::LEA if !carries && !high => count(Role::Sh).map_or(0, |count| (a + count).min(b)),
            Op::SHF => match (data.mods.get(Mod::Dir) == value::dir::L, high, count(Role::B)) {
                (true, false, Some(count)) => a + count,
                (false, true, Some(count)) => c.saturating_sub(count),
                _ => 0,
            },
            Op::LOP3 => self.logic(inst).unwrap_or(0),
            _ => 0,
        }
        .min(ALL)
    }

    /// The zero bits of a function of three words, bit by bit.
    fn logic(&self, inst: InstId) -> Option<u32> {
        let table = lut(self.function, inst)?;
        let operands = [Role::A, Role::B, Role::C].each(|role| self.function.arg(inst, role));
        let known = operands.each(|operand| (self.function.word_value(operand), self.operand(operand)));
        let zero = |bit: u32| {
            let possible = |row: u32| {
                known.iter().enumerate().all(|(at, (value, zeros))| match value {
                    Some(value) => value >> bit & 1 == row >> (2 - at) & 1,
                    None => bit >= *zeros || row >> (2 - at) & 1 == 0,
                })
            };
            !(0..8).any(|row| table >> row & 1 == 1 && possible(row))
        };
        Some((0..ALL).take_while(|bit| zero(*bit)).count() as u32)
    }

    fn operand(&self, operand: Operand) -> u32 {
        // A negation keeps the zeros.
        let plain = operand.plain();
        if operand != plain && operand != plain.negated() {
            return 0;
        }
        match plain.kind() {
            Kind::Null => ALL,
            Kind::Reg(reg) => self.known(reg),
            Kind::Vector(vector) => self.function.vector_regs(vector).first().map_or(0, |reg| self.known(*reg)),
            _ => self.function.word_value(plain).map_or(0, u32::trailing_zeros),
        }
    }

    fn known(&self, word: VReg) -> u32 {
        self.places.get(&word).map_or(0, |at| self.words[*at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::text;
    use cranelift_entity::EntityRef;

    const TEXT: &str = "function k sm_90 ssa
b0:
  S2R d=r0 s=s33
  SHF d=r1 a=r0 b=0x4 c=Z
  IADD3 d=r2 a=r1 b=0x408 c=Z
  LOP3 d=r3 a=r0 b=0xfffffff0 c=Z lut=0xc0
  IMAD d=r4 a=r1 b=0xc c=r3
  LEA d=r5 a=r0 b=r2 sh=0x5
  SHF{dir=R itype=U32 hi=HI} d=r6 a=Z b=0x1 c=r4
  BRA target=b1
b1:
  PHI d=r7 b0=r4 b1=r8
  IADD3 d=r8 a=r7 b=-0x40 c=Z
  ISETP{cmp=LT} pu=p9 a=r8 b=r0
  @p9 BRA target=b1
  BRA target=b2
b2:
  STG{e=E} a={r8,r8} off=0x0 b=r6
  EXIT
";

    #[test]
    fn sums_shifts_and_loops_keep_zeros() {
        let function = text::parse(TEXT).expect("a function");
        let def_use = DefUse::new(&function);
        let zeros = |number: usize| of(&function, &def_use, VReg::new(number));
        let expected = [(0, 0), (1, 4), (2, 3), (3, 4), (4, 4), (5, 3), (6, 3), (7, 4), (8, 4)];
        for (number, bits) in expected {
            assert_eq!(zeros(number), bits, "r{number}");
        }
    }
}
