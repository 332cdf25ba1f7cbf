//! The instructions of a function, with lists of the registers that they define and read.
//!
//! Passes ask for these registers far more often than instructions change, and to find them among
//! the operands takes much longer than to go over a list. So [`Function::list_registers`] lists
//! them, the pass manager has it done before each pass, and whoever may change an instruction takes
//! it off the lists.
//!
//! [`Function::list_registers`]: super::Function::list_registers

use super::arena::Arena;
use super::function::{InstData, InstId, VReg};
use cranelift_entity::EntityRef;
use std::ops::{Index, IndexMut};

/// Listed registers for each instruction from which on those of changed instructions are many.
const MANY: usize = 24;

/// All instructions of a function.
#[derive(Clone, Default)]
pub struct Insts {
    data: Arena<InstId, InstData>,
    places: Vec<Place>,
    registers: Vec<VReg>,
    /// Instructions that were made or changed since all were listed.
    changed: Vec<InstId>,
}

/// Where the registers of an instruction are listed: those that it defines, then those it reads.
#[derive(Clone, Copy)]
struct Place {
    first: u32,
    defs: u16,
    uses: u16,
}

/// The place of an instruction that is not listed: behind all lists.
const NOWHERE: Place = Place { first: u32::MAX, defs: 0, uses: 0 };

impl Index<InstId> for Insts {
    type Output = InstData;

    #[inline]
    fn index(&self, inst: InstId) -> &InstData {
        &self.data[inst]
    }
}

impl IndexMut<InstId> for Insts {
    #[inline]
    fn index_mut(&mut self, inst: InstId) -> &mut InstData {
        self.change(inst);
        &mut self.data[inst]
    }
}

impl Insts {
    /// Adds an instruction.
    #[inline]
    pub fn push(&mut self, data: InstData) -> InstId {
        self.places.push(NOWHERE);
        let inst = self.data.push(data);
        self.changed.push(inst);
        inst
    }

    /// Drops the room for more instructions.
    pub(super) fn shrink(&mut self) {
        self.data.shrink_to_fit();
        self.places.shrink_to_fit();
    }

    /// Keeps these instructions, which are in order, and numbers them anew.
    pub(super) fn keep(&mut self, kept: &[InstId]) {
        self.data = kept.iter().map(|inst| self.data[*inst]).collect();
        self.places = vec![NOWHERE; kept.len()];
        self.registers = Vec::new();
        self.changed = self.data.keys().collect();
    }

    /// Number of instructions created, without those that were dropped.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there is no instruction.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// All instructions, for changes of anything but their operands.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut InstData> {
        self.data.values_mut()
    }

    /// An instruction is about to change.
    #[inline]
    pub(super) fn change(&mut self, inst: InstId) {
        let place = &mut self.places[inst.index()];
        // What is in no list is among the changed ones already.
        if place.first != NOWHERE.first {
            *place = NOWHERE;
            self.changed.push(inst);
        }
    }

    /// The registers that an instruction defines, if they are listed.
    #[inline]
    pub(super) fn defs(&self, inst: InstId) -> Option<&[VReg]> {
        let place = self.places[inst.index()];
        let first = place.first as usize;
        self.registers.get(first..first + usize::from(place.defs))
    }

    /// The registers that an instruction reads, if they are listed.
    #[inline]
    pub(super) fn uses(&self, inst: InstId) -> Option<&[VReg]> {
        let place = self.places[inst.index()];
        let first = place.first as usize + usize::from(place.defs);
        self.registers.get(first..first + usize::from(place.uses))
    }

    /// Takes the list, and the instructions that are to be added to it.
    pub(super) fn begin(&mut self) -> (Vec<VReg>, Vec<InstId>) {
        if self.registers.len() > MANY * self.len() {
            self.registers.clear();
            self.places.fill(NOWHERE);
            self.changed = self.data.keys().collect();
        }
        (std::mem::take(&mut self.registers), std::mem::take(&mut self.changed))
    }

    /// An instruction defines the registers of the list from `first` on up to `uses`, and reads
    /// those behind. Wherever they are too many, it remains without a place.
    pub(super) fn note(&mut self, inst: InstId, list: &[VReg], first: usize, uses: usize) {
        let counts = (u16::try_from(uses - first), u16::try_from(list.len() - uses), u32::try_from(list.len()));
        if let (Ok(defs), Ok(uses), Ok(_)) = counts {
            self.places[inst.index()] = Place { first: first as u32, defs, uses };
        }
    }

    /// Gives the list back.
    #[inline]
    pub(super) fn finish(&mut self, list: Vec<VReg>) {
        self.registers = list;
    }
}

#[cfg(test)]
mod tests {
    use crate::ori::{Function, InstId, Operand, VReg, text};
    use crate::tables::Role;

    fn registers(function: &Function, inst: InstId) -> [Vec<VReg>; 2] {
        let (mut defs, mut uses) = (Vec::new(), Vec::new());
        function.for_each_def(inst, |reg| defs.push(reg));
        function.for_each_use(inst, |reg| uses.push(reg));
        [defs, uses]
    }

    #[test]
    fn lists_are_those_of_the_operands_before_and_behind_a_change() {
        let source = "function k sm_90\nb0:\n  MOV d=r0 a=Z\n  LDG{e=E size=64} d={r1,r2} a={r3,r4} off=0x0\n  \
                      @p0 IADD3 d=r5 a=r1 b=r2 c=r0\n  EXIT\n";
        let mut function = text::parse(source).unwrap();
        let insts = function[function.layout()[0]].clone();
        let all = |function: &Function| insts.iter().map(|inst| registers(function, *inst)).collect::<Vec<_>>();
        let found = all(&function);
        assert_eq!(found[2].each_ref().map(Vec::len), [1, 4]);
        function.list_registers();
        assert!(insts.iter().all(|inst| function.insts().defs(*inst).is_some()));
        assert!(all(&function) == found && function.wrongly_listed().is_none());
        let reg = found[0][0][0];
        function.set_arg(insts[2], Role::A, Operand::reg(reg));
        assert_eq!(registers(&function, insts[2])[1][0], reg);
        function[insts[2]].guard = Operand::NULL;
        assert_eq!(registers(&function, insts[2])[1].len(), 3);
        function.list_registers();
        assert!(registers(&function, insts[2])[1].len() == 3 && function.wrongly_listed().is_none());
    }

    /// More registers than are found at a time.
    #[test]
    fn many_registers_are_found_part_by_part() {
        let regs: Vec<String> = (0..40).map(|number| format!("r{number}")).collect();
        let source = format!("function k sm_90\nb0:\n  ENTRY out({})\n  EXIT\n", regs.join(" "));
        let mut function = text::parse(&source).unwrap();
        let entry = function[function.layout()[0]][0];
        let found = registers(&function, entry);
        assert_eq!(found[0].len(), 40);
        function.list_registers();
        assert!(registers(&function, entry) == found);
    }
}
