//! Instructions: new ones, their operands by role, implicit operands and old values.

use super::{ControlWord, File, Function, InstData, InstId, Listed};
use crate::ori::operand::Operand;
use crate::tables::ori::{Direction, RoleInfo, Width};
use crate::tables::{Mods, Op, Role};
use cranelift_entity::EntityRef;

impl Function {
    /// Whether an instruction is a branch whose condition is in the uniform file. It is its guard,
    /// and becomes an operand when the instruction is encoded.
    pub fn is_uniform_branch(&self, inst: InstId) -> bool {
        let data = &self[inst];
        data.op == Op::BRA && data.guard.as_reg().is_some_and(|reg| self[reg].file == File::UP)
    }

    /// Creates an instruction with null operands, in no block yet.
    pub fn make(&mut self, op: Op) -> InstId {
        let start = self.operands.len();
        self.operands.resize(start + op.info().roles.len(), Operand::NULL);
        self.push(op, start)
    }

    /// Creates an instruction with these operands (one per role; any number for a PHI), in no block
    /// yet.
    pub fn make_with(&mut self, op: Op, operands: &[Operand]) -> InstId {
        let start = self.operands.len();
        self.operands.extend_from_slice(operands);
        self.push(op, start)
    }

    /// Creates an instruction with the operands from `start` on.
    fn push(&mut self, op: Op, start: usize) -> InstId {
        self.insts.push(Self::new_inst(op, start, self.operands.len() - start))
    }

    fn new_inst(op: Op, start: usize, len: usize) -> InstData {
        InstData {
            op,
            mods: Mods::default(),
            guard: Operand::NULL,
            start: start as u32,
            len: len as u16,
            extra_uses: 0,
            extra_defs: 0,
            olds: 0,
            listed: Listed::No,
            line: 0,
            contract: false,
            ordered: false,
            ctrl: ControlWord::default(),
        }
    }

    /// Makes an instruction another one without operands and guard, in the place of its operands.
    pub fn remake(&mut self, inst: InstId, op: Op) {
        let InstData { start, len, line, .. } = self.insts[inst];
        let (mut start, roles) = (start as usize, op.info().roles.len());
        if roles > usize::from(len) {
            start = self.operands.len();
            self.operands.resize(start + roles, Operand::NULL);
        }
        self.operands[start..start + roles].fill(Operand::NULL);
        self.insts[inst] = InstData { line, ..Self::new_inst(op, start, roles) };
    }

    /// Drops the instructions that are in no block, if they are many. The others keep their order,
    /// but have new numbers.
    pub fn compact(&mut self) {
        let mut kept: Vec<InstId> = self.blocks.values().flatten().copied().collect();
        kept.sort_unstable();
        kept.dedup();
        if kept.len() > self.insts.len() / 8 * 7 {
            return;
        }
        let mut operands = Vec::new();
        for inst in &kept {
            let InstData { start, len, olds, .. } = self.insts[*inst];
            let (first, count) = (start as usize, usize::from(len) + usize::from(olds));
            self.insts[*inst].start = operands.len() as u32;
            operands.extend_from_slice(&self.operands[first..first + count]);
        }
        self.operands = operands;
        let number = |inst: &InstId| kept.binary_search(inst).ok().map(InstId::new);
        self.above_frame = self.above_frame.iter().filter_map(number).collect();
        self.blocks.values_mut().flatten().for_each(|inst| *inst = number(inst).unwrap_or(*inst));
        self.insts.keep(&kept);
    }

    /// A copy of an instruction with operands of its own, in no block yet.
    pub fn copy_inst(&mut self, inst: InstId) -> InstId {
        let mut data = self.insts[inst];
        let (first, len) = (data.start as usize, usize::from(data.len + data.olds));
        data.start = self.operands.len() as u32;
        self.operands.extend_from_within(first..first + len);
        let copy = self.insts.push(data);
        if self.above_frame.contains(&inst) {
            self.above_frame.push(copy);
        }
        copy
    }

    /// Operands in role order, then implicit operands; without tied old values.
    #[inline]
    pub fn args(&self, inst: InstId) -> &[Operand] {
        let data = &self.insts[inst];
        &self.operands[data.start as usize..data.start as usize + usize::from(data.len)]
    }

    /// As [`Function::args`], mutable.
    #[inline]
    pub fn args_mut(&mut self, inst: InstId) -> &mut [Operand] {
        self.insts.change(inst);
        let data = &self.insts[inst];
        &mut self.operands[data.start as usize..data.start as usize + usize::from(data.len)]
    }

    /// Tied old values of a guarded instruction in SSA form, one per definition.
    #[inline]
    pub fn olds(&self, inst: InstId) -> &[Operand] {
        let data = &self.insts[inst];
        let start = data.start as usize + usize::from(data.len);
        &self.operands[start..start + usize::from(data.olds)]
    }

    /// As [`Function::olds`], mutable.
    pub fn olds_mut(&mut self, inst: InstId) -> &mut [Operand] {
        self.insts.change(inst);
        let data = &self.insts[inst];
        let start = data.start as usize + usize::from(data.len);
        &mut self.operands[start..start + usize::from(data.olds)]
    }

    /// Sets the implicit uses and definitions of a new instruction; they follow the roles in
    /// [`Function::args`], uses first. Must precede `set_olds`.
    pub fn set_extras(&mut self, inst: InstId, uses: &[Operand], defs: &[Operand]) {
        let args = self.args(inst).to_vec();
        let start = self.operands.len() as u32;
        self.operands.extend(args);
        self.operands.extend_from_slice(uses);
        self.operands.extend_from_slice(defs);
        let data = &mut self.insts[inst];
        data.start = start;
        data.len += (uses.len() + defs.len()) as u16;
        (data.extra_uses, data.extra_defs) = (uses.len() as u16, defs.len() as u16);
    }

    /// Adds an implicit use to an instruction without implicit definitions and without old values.
    pub fn add_extra_use(&mut self, inst: InstId, operand: Operand) {
        let mut uses = self.extras(inst).0.to_vec();
        uses.push(operand);
        self.set_extra_uses(inst, &uses);
    }

    /// Replaces the implicit uses of an instruction without implicit definitions and without old
    /// values.
    pub fn set_extra_uses(&mut self, inst: InstId, uses: &[Operand]) {
        let data = &mut self.insts[inst];
        debug_assert!(data.extra_defs == 0 && data.olds == 0);
        data.len -= data.extra_uses;
        data.extra_uses = 0;
        self.set_extras(inst, uses, &[]);
    }

    /// The implicit operands: uses, definitions.
    pub fn extras(&self, inst: InstId) -> (&[Operand], &[Operand]) {
        let data = &self.insts[inst];
        let extra = usize::from(data.extra_uses + data.extra_defs);
        self.args(inst)[usize::from(data.len) - extra..].split_at(usize::from(data.extra_uses))
    }

    /// Replaces the tied old values.
    pub fn set_olds(&mut self, inst: InstId, olds: &[Operand]) {
        if olds.len() <= usize::from(self.insts[inst].olds) {
            self.insts[inst].olds = olds.len() as u16;
            return self.olds_mut(inst).copy_from_slice(olds);
        }
        let (first, start) = (self.insts[inst].start as usize, self.operands.len() as u32);
        self.operands.extend_from_within(first..first + usize::from(self.insts[inst].len));
        self.operands.extend_from_slice(olds);
        let data = &mut self.insts[inst];
        data.start = start;
        data.olds = olds.len() as u16;
    }

    /// The operand in a role; null if the opcode lacks the role.
    #[inline]
    pub fn arg(&self, inst: InstId, role: Role) -> Operand {
        self.insts[inst].op.role_index(role).map_or(Operand::NULL, |i| self.args(inst)[i])
    }

    /// Sets the operand in a role, which the opcode must have.
    #[inline]
    pub fn set_arg(&mut self, inst: InstId, role: Role, operand: Operand) {
        let index = self.insts[inst].op.role_index(role);
        debug_assert!(index.is_some(), "{:?} has no role {role:?}", self.insts[inst].op);
        if let Some(i) = index {
            self.args_mut(inst)[i] = operand;
        }
    }

    /// Whether a position is a definition or a use; a PHI defines its first operand and uses the
    /// others.
    #[inline]
    pub fn direction(&self, inst: InstId, position: usize) -> Direction {
        let data = &self.insts[inst];
        let (defs, uses) = data.op.places();
        let place = 1u32.checked_shl(position as u32).unwrap_or(0);
        if u32::from(defs) & place != 0 {
            return Direction::Def;
        }
        if u32::from(uses) & place != 0 || data.op == Op::PHI {
            return Direction::Use;
        }
        let extras = usize::from(data.len - data.extra_uses - data.extra_defs);
        match position {
            _ if position < extras.max(data.op.info().roles.len()) => Direction::None,
            _ if position < extras + usize::from(data.extra_uses) => Direction::Use,
            _ => Direction::Def,
        }
    }

    /// Width of the operand in a role of this instruction, in 32-bit words.
    #[inline]
    pub fn width(&self, inst: InstId, role: &RoleInfo) -> u8 {
        width_of(role.width, &self.insts[inst].mods)
    }

    /// Number of instructions in blocks.
    pub fn inst_count(&self) -> usize {
        self.layout.iter().map(|b| self.blocks[*b].len()).sum()
    }
}

/// Width of an operand in 32-bit words, from its width rule and the instruction's modifiers.
#[inline]
pub fn width_of(width: Width, mods: &Mods) -> u8 {
    width.words(mods)
}
