//! Who makes a value and how often it is read: what the optimisations in SSA form look up.
//!
//! Input: a function in SSA form. Output: for each register its definition and the number of operands that read it. Invariant: counts
//! are kept up by [`DefUse::update`]; what nothing reads any more no longer counts as a reader itself.

use crate::ori::{Function, InstId, Kind, Operand, VReg};
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Whether the target has an encoding of an instruction as it stands, whatever its registers become.
pub type Fits<'a> = &'a dyn Fn(&Function, InstId) -> bool;

/// Definitions and counts of uses.
#[derive(Clone, PartialEq, Eq)]
pub struct DefUse {
    definition: SecondaryMap<VReg, Option<InstId>>,
    uses: SecondaryMap<VReg, u32>,
}

impl DefUse {
    pub fn new(function: &Function) -> DefUse {
        let limit = function.regs.len();
        let mut def_use =
            DefUse { definition: SecondaryMap::with_capacity(limit), uses: SecondaryMap::with_capacity(limit) };
        for inst in function.layout.iter().flat_map(|b| &function.blocks[*b]) {
            function.for_each_use(*inst, |reg| def_use.uses[reg] += 1);
            function.for_each_def(*inst, |reg| def_use.definition[reg] = Some(*inst));
        }
        def_use
    }

    /// The unguarded pure instruction that makes a register, where the allocator may put it anywhere.
    pub fn def_of(&self, function: &Function, reg: VReg) -> Option<InstId> {
        let inst = self.definition[reg]?;
        (is_pure(function, inst) && is_free(function, reg)).then_some(inst)
    }

    /// The same, if nothing else reads the register.
    pub fn single_use_def(&self, function: &Function, reg: VReg) -> Option<InstId> {
        self.def_of(function, reg).filter(|_| self.uses[reg] == 1)
    }

    pub fn uses(&self, reg: VReg) -> u32 {
        self.uses[reg]
    }

    /// The value of a register that is the same in every run.
    pub fn constant(&self, function: &Function, reg: VReg) -> Option<u32> {
        let inst = self.def_of(function, reg).filter(|i| function.insts[*i].op == Op::MOV)?;
        let source = function.arg(inst, Role::A);
        let whole = function.arg(inst, Role::Lanes).is_null() && source == source.plain();
        match source.kind() {
            Kind::Zero if whole => Some(0),
            Kind::Imm(_) if whole => function.imm_value(source).map(|v| v as u32),
            _ => None,
        }
    }

    /// The value of an operand of one word without modifiers.
    pub fn known(&self, function: &Function, operand: Operand) -> Option<u32> {
        match operand.kind() {
            _ if operand != operand.plain() => None,
            Kind::Zero => Some(0),
            Kind::Imm(_) => function.imm_value(operand).map(|v| v as u32),
            Kind::Reg(reg) => self.constant(function, reg),
            _ => None,
        }
    }

    /// Registers that an instruction reads, to be given to `update` after it was rewritten.
    pub fn reads(function: &Function, inst: InstId) -> SmallVec<[VReg; 8]> {
        let mut reads = SmallVec::new();
        function.for_each_use(inst, |reg| reads.push(reg));
        reads
    }

    /// Notes that an instruction makes its results now.
    pub fn set_def(&mut self, function: &Function, inst: InstId) {
        function.for_each_def(inst, |reg| self.definition[reg] = Some(inst));
    }

    /// Notes that an instruction, which read `before`, was rewritten; what is not read any more stops reading.
    pub fn update(&mut self, function: &Function, inst: InstId, before: &[VReg]) {
        function.for_each_use(inst, |reg| self.uses[reg] += 1);
        let mut gone: Vec<VReg> = before.to_vec();
        while let Some(reg) = gone.pop() {
            self.uses[reg] -= 1;
            if self.uses[reg] > 0 {
                continue;
            }
            let Some(maker) = self.definition[reg].filter(|i| is_pure(function, *i)) else { continue };
            let mut unread = true;
            function.for_each_def(maker, |other| unread &= self.uses[other] == 0);
            if unread {
                // It has no reader left, so that this happens once.
                function.for_each_def(maker, |other| self.definition[other] = None);
                function.for_each_use(maker, |source| gone.push(source));
            }
        }
    }
}

/// Whether an instruction is a function of its sources and always executed.
pub fn is_pure(function: &Function, inst: InstId) -> bool {
    let data = &function.insts[inst];
    data.guard.is_null() && data.op.has(Prop::Pure)
}

/// Whether the allocator may put a register anywhere.
pub fn is_free(function: &Function, reg: VReg) -> bool {
    let data = &function.regs[reg];
    data.phys.is_none() && data.fixed.is_none()
}

/// Gives an unguarded instruction another operation with these operands; its place and its line stay.
pub fn rewrite(function: &mut Function, inst: InstId, op: Op, args: &[(Role, Operand)]) {
    let new = function.make(op);
    args.iter().for_each(|(role, operand)| function.set_arg(new, *role, *operand));
    function.insts[new].line = function.insts[inst].line;
    function.insts[inst] = function.insts[new];
}
