//! Def-use information for optimizations in SSA form: the definition of each register and the
//! number of its uses.
//!
//! [`DefUse::update`] keeps the counts current after a rewrite; an instruction whose results have
//! no uses left no longer counts as a use of its sources.

use crate::ori::{File, Function, InstId, Kind, Operand, STACK_POINTER, VReg, table};
use crate::tables::encoding::special_keeps;
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Whether the target encodes an instruction as it is, whatever registers are assigned.
pub type Fits<'a> = &'a dyn Fn(&Function, InstId) -> bool;

/// Definitions and use counts.
#[derive(Clone, PartialEq, Eq)]
pub struct DefUse {
    definition: SecondaryMap<VReg, Option<InstId>>,
    uses: SecondaryMap<VReg, u32>,
}

impl DefUse {
    /// Computes the definitions and use counts of a function in SSA form.
    pub fn new(function: &Function) -> DefUse {
        let limit = function.regs().len();
        let mut def_use = DefUse { definition: table(limit), uses: table(limit) };
        for inst in function.layout().iter().flat_map(|b| &function[*b]) {
            function.for_each_use(*inst, |reg| def_use.uses[reg] += 1);
            function.for_each_def(*inst, |reg| def_use.definition[reg] = Some(*inst));
        }
        def_use
    }

    /// The instruction that defines a register, whatever it is.
    pub fn definition(&self, reg: VReg) -> Option<InstId> {
        self.definition[reg]
    }

    /// The unguarded pure instruction that defines a register without a fixed place; `None`
    /// otherwise.
    #[inline]
    pub fn def_of(&self, function: &Function, reg: VReg) -> Option<InstId> {
        let inst = self.definition[reg]?;
        (is_pure(function, inst) && is_free(function, reg)).then_some(inst)
    }

    /// As [`DefUse::def_of`], if the register has a single use.
    pub fn single_use_def(&self, function: &Function, reg: VReg) -> Option<InstId> {
        self.def_of(function, reg).filter(|_| self.uses[reg] == 1)
    }

    /// Number of operands that read a register.
    pub fn uses(&self, reg: VReg) -> u32 {
        self.uses[reg]
    }

    /// The compile-time constant value of a register.
    pub fn constant(&self, function: &Function, reg: VReg) -> Option<u32> {
        let inst = self.def_of(function, reg).filter(|i| function[*i].op == Op::MOV)?;
        let source = function.arg(inst, Role::A);
        function.word_value(source).filter(|_| function.arg(inst, Role::Lanes).is_null())
    }

    /// The compile-time constant value of a one-word operand without modifiers.
    #[inline]
    pub fn known(&self, function: &Function, operand: Operand) -> Option<u32> {
        match operand.kind() {
            Kind::Reg(reg) if operand == operand.plain() => self.constant(function, reg),
            _ => function.word_value(operand),
        }
    }

    /// Registers that an instruction reads, for `update` after a rewrite.
    pub fn reads(function: &Function, inst: InstId) -> SmallVec<[VReg; 8]> {
        let mut reads = SmallVec::new();
        function.for_each_use(inst, |reg| reads.push(reg));
        reads
    }

    /// Records an instruction as the definition of its results.
    pub fn set_def(&mut self, function: &Function, inst: InstId) {
        function.for_each_def(inst, |reg| self.definition[reg] = Some(inst));
    }

    /// Records that the definition of a register is removed.
    pub fn forget(&mut self, reg: VReg) {
        self.definition[reg] = None;
    }

    /// Records that an instruction, which read `before`, was rewritten. Definitions that become
    /// dead give up their uses.
    pub fn update(&mut self, function: &Function, inst: InstId, before: &[VReg]) {
        function.for_each_use(inst, |reg| self.uses[reg] += 1);
        let mut gone: SmallVec<[VReg; 16]> = SmallVec::from_slice(before);
        while let Some(reg) = gone.pop() {
            self.uses[reg] -= 1;
            if self.uses[reg] > 0 {
                continue;
            }
            let Some(maker) = self.definition[reg].filter(|i| is_pure(function, *i)) else { continue };
            let mut unread = true;
            function.for_each_def(maker, |other| unread &= self.uses[other] == 0);
            if unread {
                // The definition is dead now and is removed once.
                function.for_each_def(maker, |other| self.definition[other] = None);
                function.for_each_use(maker, |source| gone.push(source));
            }
        }
    }
}

/// Whether an instruction is a pure function of its sources and unguarded.
#[inline]
pub fn is_pure(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    data.guard.is_null() && data.op.has(Prop::Pure)
}

/// Whether an instruction reads a special register that keeps its value, unguarded.
#[inline]
pub fn reads_kept(function: &Function, inst: InstId) -> bool {
    let source = function.arg(inst, Role::S).kind();
    let keeps = matches!(source, Kind::Special(number) if special_keeps(number));
    keeps && function[inst].op == Op::S2R && function[inst].guard.is_null()
}

/// Whether the allocator may choose the physical register.
#[inline]
pub fn is_free(function: &Function, reg: VReg) -> bool {
    let data = &function[reg];
    data.phys.is_none() && data.fixed.is_none()
}

/// Whether a register has one value in the whole function. Only `alloca` and calls without an ABI
/// move the stack pointer.
pub fn keeps(function: &Function, reg: VReg) -> bool {
    is_free(function, reg) || function.stack_pointer() == Some(reg)
}

/// Whether an instruction sets the stack pointer. Before allocation nothing may pass it, since
/// spill code of what passes would address another frame.
pub fn sets_stack_pointer(function: &Function, inst: InstId) -> bool {
    let mut sets = false;
    function.for_each_def(inst, |reg| {
        let data = &function[reg];
        sets |= data.file == File::R && data.phys == Some(STACK_POINTER);
    });
    sets
}

/// Replaces the operation and operands of an unguarded instruction; its position and source line
/// stay.
pub fn rewrite(function: &mut Function, inst: InstId, op: Op, args: &[(Role, Operand)]) {
    let new = function.make(op);
    args.iter().for_each(|(role, operand)| function.set_arg(new, *role, *operand));
    function[new].line = function[inst].line;
    function[inst] = function[new];
}
