//! The registers that an instruction reads and writes, as the simulator executes it.
//!
//! Everything that the executor reads is in `reads`, and everything that it may write is in
//! `writes`, except RZ, PT and the like. This list is derived from [`Code`] and is independent of
//! the compiler's.

use super::super::atomic;
use super::super::code::{AtomicType, Code, Dst, Exec, From, Pred, Src};
use super::super::tensor_memory;
use smallvec::SmallVec;

/// Register files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    Reg,
    UReg,
    Pred,
    UPred,
}

impl File {
    /// The prefix of register names in this file.
    pub fn prefix(self) -> &'static str {
        match self {
            File::Reg => "R",
            File::UReg => "UR",
            File::Pred => "P",
            File::UPred => "UP",
        }
    }
}

/// The operand that names a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    Guard,
    A,
    B,
    C,
    /// The uniform register of an address, or the metadata of a sparse product.
    Extra,
    /// A predicate source.
    Pred,
    Result,
}

/// A range of adjacent registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The register file.
    pub file: File,
    /// The first register.
    pub first: u8,
    /// The number of registers.
    pub count: u8,
    /// The operand that names them.
    pub slot: Slot,
}

impl Run {
    /// The registers' numbers, without RZ.
    pub fn registers(self) -> impl Iterator<Item = usize> {
        let first = usize::from(self.first);
        (first..first + usize::from(self.count)).filter(|r| *r < 255)
    }
}

/// All registers that one instruction reads and writes.
#[derive(Clone, Debug, Default)]
pub struct Touches {
    /// The registers that it reads.
    pub reads: SmallVec<[Run; 6]>,
    /// The registers that it may write.
    pub writes: SmallVec<[Run; 3]>,
}

impl Touches {
    fn source(&mut self, src: &Src, slot: Slot, least: u8) {
        let count = least.max(if src.wide { 2 } else { 1 });
        match src.from {
            From::Reg(first) if first != 255 => self.reads.push(Run { file: File::Reg, first, count, slot }),
            From::UReg(first) if first != 255 => self.reads.push(Run { file: File::UReg, first, count, slot }),
            _ => {}
        }
    }

    fn predicate(&mut self, p: Pred, slot: Slot) {
        if p.index & 7 != 7 {
            let file = if p.uniform { File::UPred } else { File::Pred };
            self.reads.push(Run { file, first: p.index & 7, count: 1, slot });
        }
    }

    fn result(&mut self, dst: Dst, count: u8) {
        match dst {
            Dst::Reg(first) if first != 255 => {
                self.writes.push(Run { file: File::Reg, first, count, slot: Slot::Result })
            }
            Dst::UReg(first) if first != 255 => {
                self.writes.push(Run { file: File::UReg, first, count, slot: Slot::Result });
            }
            _ => {}
        }
    }

    fn predicate_result(&mut self, p: Pred) {
        if p.index & 7 != 7 {
            let file = if p.uniform { File::UPred } else { File::Pred };
            self.writes.push(Run { file, first: p.index & 7, count: 1, slot: Slot::Result });
        }
    }

    /// The predicates of a file that a mask selects.
    fn all_predicates(uniform: bool, mask: &Src) -> impl Iterator<Item = Run> {
        let file = if uniform { File::UPred } else { File::Pred };
        let bits = if let From::Value(bits) = mask.from { bits } else { u64::MAX };
        let named = (0..7u8).filter(move |i| bits >> i & 1 != 0);
        named.map(move |first| Run { file, first, count: 1, slot: Slot::Pred })
    }

    /// The registers of an instruction.
    pub fn of(code: &Code) -> Touches {
        let mut t = Touches::default();
        t.predicate(code.guard, Slot::Guard);
        let [a, b, c, extra] = source_words(code);
        t.source(&code.a, Slot::A, a);
        t.source(&code.b, Slot::B, b);
        t.source(&code.c, Slot::C, c);
        t.source(&code.ub, Slot::Extra, extra);
        [code.pp, code.pq, code.pr].into_iter().for_each(|p| t.predicate(p, Slot::Pred));
        if let Exec::Scaled(scaled) = code.exec {
            for (first, count) in scaled.scales().into_iter().filter(|(first, _)| *first != 255) {
                t.reads.push(Run { file: File::Reg, first, count, slot: Slot::Extra });
            }
        }
        if let Exec::TensorMemory(tensor_memory::Act::Product(factors)) = code.exec {
            for (first, count) in [(factors.kept, factors.kept_words()), (factors.scales, 2)] {
                t.reads.extend(first.map(|first| Run { file: File::UReg, first, count, slot: Slot::Extra }));
            }
        }
        if let Exec::TensorMemory(tensor_memory::Act::Load(_, Some((_, best)))) = code.exec {
            t.result(Dst::Reg(best), 1);
        }
        match code.exec {
            Exec::P2r { .. } | Exec::Up2ur { .. } => {
                let uniform = matches!(code.exec, Exec::Up2ur { .. });
                t.reads.extend(Touches::all_predicates(uniform, &code.b));
                t.result(code.d, 1);
            }
            Exec::R2p { .. } => t.writes.extend(Touches::all_predicates(code.pu.uniform, &code.b)),
            Exec::LoadWide { high, mask } => {
                t.result(code.d, (mask & 15).count_ones() as u8);
                t.result(high, (mask >> 4).count_ones() as u8);
            }
            Exec::Sample(s) => {
                let count = s.mask.count_ones() as u8;
                let words = |count: u8| if s.halves { count.div_ceil(2) } else { count };
                t.result(code.d, words(count.min(2)));
                t.result(s.high, words(count.saturating_sub(2)));
            }
            Exec::Query(q) => {
                let count = q.mask.count_ones() as u8;
                t.result(code.d, count.min(2));
                t.result(q.high, count.saturating_sub(2));
            }
            _ => t.result(code.d, result_words(code)),
        }
        if !matches!(code.exec, Exec::R2p { .. }) {
            t.predicate_result(code.pu);
            t.predicate_result(code.pv);
        }
        t.writes.retain(|run| run.count != 0);
        t
    }
}

/// Least number of words of a, b, c and the extra source; a wide source has at least two.
fn source_words(code: &Code) -> [u8; 4] {
    let vector = |bytes: u8| (bytes / 4).max(1);
    match code.exec {
        Exec::Store { access, .. } => [1, vector(access.bytes), 1, 1],
        Exec::StoreWide => [1, 4, 4, 1],
        Exec::Atomic { ty, .. } if atomic::bytes(ty) > 8 || matches!(ty, AtomicType::Lanes(..)) => {
            let words = vector(atomic::bytes(ty));
            [1, words, words, 1]
        }
        Exec::Product(_, words) => [words.a, words.b, words.d, 1],
        Exec::Quarters(_) => [2, 2, 2, 1],
        Exec::Scaled(scaled) => [4, scaled.words_of_b(), 4, 1],
        Exec::Cancel { .. } => [2, 1, 1, 1],
        Exec::Remote(remote) => [2, vector(remote.bytes), 1, 1],
        Exec::Tensor(tensor) => [tensor.words(), 1, 1, 1],
        Exec::TensorMemory(tensor_memory::Act::Store { piece }) => [1, piece.registers as u8, 1, 1],
        Exec::Group(group) => [4, 1, group.words(), if group.in_registers { 2 } else { 4 }],
        Exec::StoreMatrix { count, .. } => [1, count, 1, 1],
        Exec::Sample(s) => [s.words[0], s.words[1], 1, 1],
        Exec::Query(q) => [1 + u8::from(q.handle), 1, 1, 1],
        Exec::Surface(s) => [s.coordinates(), vector(s.bytes), 1, 1],
        _ => [1; 4],
    }
}

/// Number of words of the result.
fn result_words(code: &Code) -> u8 {
    let vector = |bytes: u8| (bytes / 4).max(1);
    match code.exec {
        Exec::Load { access, .. } | Exec::LoadConst { access, .. } => vector(access.bytes),
        Exec::Atomic { ty, .. } => vector(atomic::bytes(ty)),
        Exec::Special { wide, .. } => 1 + u8::from(wide),
        Exec::CodeAddress { .. } | Exec::Mbarrier(_) => 2,
        Exec::Product(_, words) => words.d,
        Exec::Quarters(_) => 2,
        Exec::Scaled(_) => 4,
        Exec::TensorMemory(tensor_memory::Act::Load(piece, _)) => piece.registers as u8,
        Exec::Group(group) => group.words(),
        Exec::LoadMatrix { count, .. } => count,
        Exec::Surface(s) => vector(s.bytes),
        Exec::Alu(_) => code.words,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::code::{Access, Space};
    use super::*;

    #[test]
    fn stores_read_their_vector_and_write_nothing() {
        let access = Access { bytes: 16, signed: false, strong: false };
        let mut code = Code::new(Exec::Store { space: Space::Global, access });
        code.a = Src { from: From::Reg(2), wide: true, ..Src::default() };
        code.b = Src { from: From::Reg(4), ..Src::default() };
        let touches = Touches::of(&code);
        let counts: Vec<_> = touches.reads.iter().map(|r| (r.first, r.count, r.slot)).collect();
        assert_eq!(counts, [(2, 2, Slot::A), (4, 4, Slot::B)]);
        assert!(touches.writes.is_empty());
    }

    #[test]
    fn masks_name_predicates() {
        let mut code = Code::new(Exec::P2r { byte: 0 });
        (code.b.from, code.d) = (From::Value(0b101), Dst::Reg(3));
        let touches = Touches::of(&code);
        assert_eq!(touches.reads.iter().map(|r| r.first).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(touches.writes.iter().map(|r| r.first).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn zero_registers_are_nowhere() {
        let mut code = Code::new(Exec::Nop);
        (code.a.from, code.d) = (From::Reg(255), Dst::Reg(255));
        let touches = Touches::of(&code);
        assert!(touches.reads.is_empty() && touches.writes.is_empty());
    }
}
