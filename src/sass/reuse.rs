//! The reuse cache: source operands that stay cached for a later instruction of the warp.
//!
//! [`wanted`] decides which operands get `.reuse`; [`Cache`] finds reads of a cached value that is
//! out of date. The cache has one entry for each of the three operand slots and two register banks
//! (even and odd numbers). A marked operand stays in its entry until an instruction reads another
//! register there; an instruction that names the same register in the same slot gets the cached
//! value. The rows of tables/encoding say which operands have a slot (`^122` to `^124`). Source:
//! what ptxas 13.0.88 marks over the corpus on sm_80 to sm_120.

use super::effects::Effects;
use super::inst::{ArgKind, Inst, RZ};
use super::widths::width;
use crate::tables::Prop;
use crate::tables::encoding::Form;
use crate::tables::latency::RegFile;
use smallvec::SmallVec;

/// Bit of the first slot's reuse flag in a word.
pub const FIRST_BIT: u8 = 122;
const SLOTS: usize = 3;
/// All reuse flags of a word.
pub const MARKS: u128 = ((1 << SLOTS) - 1) << FIRST_BIT;
/// Banks of general registers.
const BANKS: usize = 2;
/// The scoreboard field's value for none.
const NONE: u8 = 7;
/// Longest stall with which another warp has no turn: ptxas marks operands of no instruction with a
/// longer one but some of sm_90a.
const LONGEST: u8 = 2;
/// Number of following instructions searched for the reader: for 92 of 100 operands that ptxas
/// marks, the reader is among these.
pub const AHEAD: usize = 4;

/// A register operand with a reuse slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Index of the reuse slot, from 0.
    pub slot: u8,
    /// Number of the first register.
    pub first: u8,
    /// Number of consecutive registers.
    pub count: u8,
    /// Whether it is marked `.reuse`.
    pub kept: bool,
}

impl Operand {
    fn registers(self) -> impl Iterator<Item = u8> {
        (0..self.count).map(move |i| self.first.saturating_add(i))
    }

    /// Whether it uses a cache entry of another operand.
    fn meets(self, other: Operand) -> bool {
        let banks = |o: Operand| o.registers().fold(0u8, |mask, r| mask | 1 << (usize::from(r) % BANKS));
        self.slot == other.slot && banks(self) & banks(other) != 0
    }
}

/// The operands of an instruction that have reuse slots.
pub fn operands(form: &Form, inst: &Inst) -> SmallVec<[Operand; 4]> {
    let roles = inst.op.info().roles;
    let fields = form.args.iter().filter(|field| field.reuse != u8::MAX && field.reuse >= FIRST_BIT);
    let found = fields.filter_map(|field| {
        let (role, arg) = (roles.get(usize::from(field.slot))?, inst.args[usize::from(field.slot)]);
        let register = arg.kind == ArgKind::Reg && arg.val != u64::from(RZ);
        let slot = field.reuse - FIRST_BIT;
        register.then(|| Operand { slot, first: arg.val as u8, count: width(inst, role), kept: arg.reuse })
    });
    found.filter(|operand| usize::from(operand.slot) < SLOTS).collect()
}

/// The slots to mark in each instruction of a block, one bit each. The control fields must be
/// final.
pub fn wanted(block: &[(&Form, Inst)]) -> Vec<u8> {
    let all: Vec<_> = block.iter().map(|(form, inst)| operands(form, inst)).collect();
    let slots = |at: usize| {
        let ctrl = block[at].1.ctrl;
        if ctrl.write_bar != NONE || ctrl.read_bar != NONE || !stays(&block[at].1) {
            return 0;
        }
        let kept = all[at].iter().filter(|operand| is_read_again(block, &all, at, **operand));
        kept.fold(0u8, |mask, operand| mask | 1 << operand.slot)
    };
    (0..block.len()).map(slots).collect()
}

/// Whether the next use of an operand's cache entry reads the same registers, unchanged.
fn is_read_again(block: &[(&Form, Inst)], all: &[SmallVec<[Operand; 4]>], at: usize, operand: Operand) -> bool {
    for next in at + 1..block.len().min(at + 1 + AHEAD) {
        let before = &block[next - 1].1;
        if !stays(before) || writes(before, operand) {
            return false;
        }
        if let Some(reader) = all[next].iter().find(|other| other.meets(operand)) {
            return (reader.first, reader.count) == (operand.first, operand.count);
        }
    }
    false
}

/// Whether the warp issues the next instruction without giving way, with the same active lanes.
fn stays(inst: &Inst) -> bool {
    let ctrl = inst.ctrl;
    ctrl.stay && (1..=LONGEST).contains(&ctrl.stall) && !inst.op.has(Prop::Control) && !inst.op.has(Prop::Convergent)
}

fn writes(inst: &Inst, operand: Operand) -> bool {
    written(inst).any(|register| operand.registers().any(|own| own == register))
}

/// The general registers that an instruction writes.
pub fn written(inst: &Inst) -> impl Iterator<Item = u8> {
    let general = Effects::of(inst).writes.into_iter().filter(|access| access.file == RegFile::R);
    general.flat_map(|access| access.registers().map(|(register, _)| register))
}

/// Contents of a cache entry.
#[derive(Clone, Copy, Debug)]
struct Kept {
    register: u8,
    place: u32,
    /// Lanes on which the register was written since, and the instruction that did it.
    stale: u32,
    by: u32,
}

/// A read of a cached value while its register already holds another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    pub register: u8,
    /// The instructions that cached it and that wrote the register since.
    pub kept: u32,
    pub written: u32,
    /// Lanes that read it, one bit each.
    pub lanes: u32,
}

/// The reuse cache of a warp.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cache {
    places: [[Option<Kept>; BANKS]; SLOTS],
    /// Whether any entry may be occupied.
    used: bool,
}

impl Cache {
    /// Executes the instruction at `at` on a set of lanes, one bit each; calls `f` with each stale
    /// value that it reads.
    pub fn step(
        &mut self,
        operands: &[Operand],
        written: impl Iterator<Item = u8>,
        (at, lanes): (u32, u32),
        mut f: impl FnMut(Stale),
    ) {
        let keeps = operands.iter().any(|operand| operand.kept);
        if !self.used && !keeps {
            return;
        }
        self.used = true;
        for operand in operands {
            for register in operand.registers() {
                let place = &mut self.places[usize::from(operand.slot)][usize::from(register) % BANKS];
                if let Some(kept) = place.filter(|kept| kept.register == register && kept.stale & lanes != 0) {
                    f(Stale { register, kept: kept.place, written: kept.by, lanes: kept.stale & lanes });
                }
                *place = operand.kept.then_some(Kept { register, place: at, stale: 0, by: at });
            }
        }
        for register in written {
            let same = self.places.iter_mut().flatten().flatten().filter(|kept| kept.register == register);
            same.for_each(|kept| (kept.stale, kept.by) = (kept.stale | lanes, at));
        }
    }

    /// Empties the cache.
    pub fn clear(&mut self) {
        *self = Cache::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, pick};
    use super::*;
    use crate::tables::Target;

    /// Instructions, each with its stall.
    fn block(lines: &[(&str, u8)]) -> Vec<(&'static Form, Inst)> {
        let target = Target::by_name("sm_90").unwrap();
        let one = |(line, stall): &(&str, u8)| {
            let mut inst = parse(target, line, 0, None).unwrap_or_else(|e| panic!("{line}: {}", e.message));
            (inst.ctrl.stall, inst.ctrl.stay) = (*stall, true);
            (pick(target, &inst).unwrap().0, inst)
        };
        lines.iter().map(one).collect()
    }

    #[test]
    fn what_the_next_one_reads_in_the_same_slot_is_kept() {
        let again = ("FFMA R9, R1, R5, R6", 4);
        for (lines, slots) in [
            (vec![("FFMA R8, R1, R2, R3", 2), again], 0b001),
            // Another slot; another register; a stall that lets other warps issue.
            (vec![("FFMA R8, R2, R1, R3", 2), again], 0),
            (vec![("FFMA R8, R7, R2, R3", 2), again], 0),
            (vec![("FFMA R8, R1, R2, R3", 4), again], 0),
            // Written in between, or by the first instruction itself.
            (vec![("FFMA R1, R1, R2, R3", 2), again], 0),
            (vec![("FFMA R8, R1, R2, R3", 2), ("MOV R1, 0x1", 2), again], 0),
            // The other bank is a different entry; the same bank is not.
            (vec![("FFMA R8, R1, R2, R3", 2), ("FADD R4, R2, 1", 2), again], 0b001),
            (vec![("FFMA R8, R1, R2, R3", 2), ("FADD R4, R3, 1", 2), again], 0),
            (vec![("FFMA R8, R1, R2, R3", 2), ("BAR.SYNC 0x0", 2), again], 0),
        ] {
            assert_eq!(wanted(&block(&lines))[0], slots, "{lines:?}");
        }
    }

    #[test]
    fn a_kept_value_does_not_follow_its_register() {
        let mut found = Vec::new();
        let mut cache = Cache::default();
        let lines = [("FFMA R8, R1.reuse, R2, R3", 2), ("MOV R1, 0x1", 2), ("FFMA R9, R1, R5, R6", 2)];
        for pass in 0..2 {
            for (at, (form, inst)) in block(&lines).iter().enumerate() {
                cache.step(&operands(form, inst), written(inst), (at as u32, 0xf), |stale| found.push((pass, stale)));
            }
        }
        let stale = |pass| (pass, Stale { register: 1, kept: 0, written: 1, lanes: 0xf });
        assert_eq!(found, [stale(0), stale(1)]);
    }
}
