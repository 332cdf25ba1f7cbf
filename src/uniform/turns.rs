//! Loops of the pass `elections`: a block that leads back to itself, in which lanes take turns.
//!
//! Where all lanes come to it together, with the same words:
//! - lanes that the words choose (ISETP compares each word with what R2UR has handed over of it)
//!   are all chosen in the first turn, so there is no loop, and nothing in it needs a guard;
//! - what an elected lane hands over, all lanes have, so R2UR needs no guard; if besides the rest
//!   changes nothing when it is done again (property `idempotent`), there is no loop.
//!
//! Nothing may read behind a loop of elected lanes what a turn makes: each lane has it of its own.

use super::elections::is_hand_over;
use crate::analysis::PassCx;
use crate::analysis::def_use::is_pure;
use crate::analysis::divergence::{Results, Varying, apart_behind, results};
use crate::ori::{Block, Function, InstId, Kind, Operand, VReg};
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;

/// Settles the loops of a function; whether it may have changed something.
pub fn settle(cx: &mut PassCx) -> bool {
    let (cfg, lanes) = (cx.cfg(), cx.divergence());
    let mut changed = false;
    for block in cfg.rpo.iter().filter(|block| cfg.succs[**block].contains(block)) {
        if apart_behind(cx.function, &cx.function[*block], lanes.interleaved.contains(*block)) {
            continue;
        }
        let Some(mut turn) = Turn::of(cx.function, &lanes, *block) else { continue };
        let gone = match turn.comparisons() {
            Some(comparisons) => {
                turn.release(|_, _| true);
                turn.remove_unread(comparisons);
                true
            }
            None => turn.is_elected() && turn.of_elected(),
        };
        if gone {
            cx.decided.push(turn.branch);
            turn.leave();
        }
        changed = true;
    }
    if changed {
        cx.invalidate(&[]);
    }
    changed
}

/// A loop of one block.
struct Turn<'a> {
    function: &'a mut Function,
    lanes: &'a Varying,
    block: Block,
    /// What leads back to it, for the lanes that were not chosen.
    branch: InstId,
    /// Holds in the lanes whose turn it is.
    chosen: VReg,
}

impl<'a> Turn<'a> {
    /// The loop of a block that a branch of the lanes that are not chosen leads back to.
    fn of(function: &'a mut Function, lanes: &'a Varying, block: Block) -> Option<Turn<'a>> {
        let [.., branch, leave] = function[block][..] else { return None };
        let leads_back = |inst: InstId| {
            function[inst].op == Op::BRA && function.arg(inst, Role::Target).kind() == Kind::Label(block)
        };
        let guard = function[branch].guard;
        let alone = function.first_terminator(block) + 2 == function[block].len();
        let plain = function[leave].op == Op::BRA && function[leave].guard.is_null() && !leads_back(leave);
        if !alone || !plain || !leads_back(branch) || !guard.not() {
            return None;
        }
        Some(Turn { chosen: guard.as_reg()?, function, lanes, block, branch })
    }

    fn varies(&self, reg: VReg) -> bool {
        self.lanes.regs.contains(reg)
    }

    /// The unguarded instruction of the block that makes a register.
    fn maker(&self, op: Op, role: Role, reg: VReg) -> Option<InstId> {
        let makes = |inst: &&InstId| {
            let data = &self.function[**inst];
            data.op == op && data.guard.is_null() && self.function.arg(**inst, role).as_reg() == Some(reg)
        };
        self.function[self.block].iter().find(makes).copied()
    }

    /// The comparisons, the last first, if lanes are chosen that have the words which all have.
    fn comparisons(&self) -> Option<Vec<InstId>> {
        let (mut found, mut chosen) = (Vec::new(), self.chosen);
        loop {
            let inst = self.maker(Op::ISETP, Role::Pu, chosen)?;
            let (a, b) = (self.function.arg(inst, Role::A), self.function.arg(inst, Role::B));
            let same = |word: Operand, handed: Operand| {
                let maker = handed.as_reg().and_then(|reg| self.maker(Op::R2UR, Role::D, reg));
                let of_word = maker.is_some_and(|maker| self.function.arg(maker, Role::A) == word);
                of_word && word == word.plain() && word.as_reg().is_some_and(|word| !self.varies(word))
            };
            let equal = self.function[inst].mods.get(Mod::Cmp) == value::cmp::EQ
                && self.function[inst].mods.get(Mod::X) == 0
                && self.function.arg(inst, Role::Pv).is_null();
            if !equal || !same(a, b) && !same(b, a) {
                return None;
            }
            found.push(inst);
            let with = self.function.arg(inst, Role::Pp);
            match with.as_reg() {
                Some(reg) if !with.not() => chosen = reg,
                None if with.is_null() || with == Operand::always() => return Some(found),
                _ => return None,
            }
        }
    }

    /// Takes the guards from instructions that it holds for.
    fn release(&mut self, holds: impl Fn(&Turn, InstId) -> bool) {
        let chosen = Operand::reg(self.chosen);
        for inst in self.function[self.block].clone() {
            if self.function[inst].guard == chosen && holds(self, inst) {
                self.function[inst].guard = Operand::NULL;
                self.function.set_olds(inst, &[]);
            }
        }
    }

    /// Removes those of these instructions whose results nothing but the branch reads.
    fn remove_unread(&mut self, insts: Vec<InstId>) {
        for inst in insts {
            let result = self.function.arg(inst, Role::Pu).as_reg();
            let mut read = false;
            for other in self.function.layout().iter().flat_map(|block| &self.function[*block]) {
                if *other != self.branch {
                    self.function.for_each_use(*other, |reg| read |= Some(reg) == result);
                }
            }
            if !read {
                self.function[self.block].retain(|other| *other != inst);
            }
        }
    }

    /// Whether each turn is of an elected lane.
    fn is_elected(&self) -> bool {
        let elects = |inst: InstId| {
            let of = self.function.arg(inst, Role::Pp);
            of.is_null() || of == Operand::always()
        };
        self.maker(Op::ELECT, Role::Pu, self.chosen).is_some_and(elects)
    }

    /// Hands words over for all lanes that all have; whether one turn does for all.
    fn of_elected(&mut self) -> bool {
        self.release(|turn, inst| {
            let word = turn.function.arg(inst, Role::A).as_reg();
            turn.function[inst].op == Op::R2UR && word.is_some_and(|word| !turn.varies(word))
        });
        for inst in self.function[self.block].clone() {
            if self.function[inst].op == Op::R2UR && self.function[inst].guard.is_null() {
                self.function[inst].mods.set(Mod::Bcast, 0);
            }
        }
        self.is_repeatable() && !self.is_read_behind()
    }

    /// Whether what a turn does with the same words in all lanes changes nothing the second time.
    fn is_repeatable(&self) -> bool {
        let function = &*self.function;
        let mut acts = false;
        // What is made here differs between lanes only if its sources do.
        let mut made: SecondaryMap<VReg, bool> = SecondaryMap::new();
        let body = &function[self.block][..function.first_terminator(self.block)];
        let all = body.iter().all(|inst| {
            let data = &function[*inst];
            let mut same = data.guard.is_null();
            function.for_each_use(*inst, |reg| same &= made[reg] || !self.varies(reg));
            let alike = same && data.op != Op::PHI && results(function, *inst) != Results::Different;
            let mut silent = true;
            function.for_each_def(*inst, |reg| {
                silent = false;
                made[reg] = alike;
            });
            let again = silent && data.op.is_idempotent(&data.mods);
            acts |= again;
            let chooses = data.op != Op::PHI && (is_pure(function, *inst) || data.op.has(Prop::Droppable));
            chooses || same && (again || is_hand_over(function, *inst))
        });
        acts && all
    }

    /// Whether something elsewhere reads what the block makes.
    fn is_read_behind(&self) -> bool {
        let function = &*self.function;
        let mut made: SecondaryMap<VReg, bool> = SecondaryMap::new();
        for inst in &function[self.block] {
            function.for_each_def(*inst, |reg| made[reg] = true);
        }
        let elsewhere = function.layout().iter().filter(|block| **block != self.block);
        let mut read = false;
        for inst in elsewhere.flat_map(|block| &function[*block]) {
            function.for_each_use(*inst, |reg| read |= made[reg]);
        }
        read
    }

    /// Leaves the loop after the first turn.
    fn leave(&mut self) {
        let (block, branch) = (self.block, self.branch);
        self.function[block].retain(|inst| *inst != branch);
        for phi in self.function[block].clone() {
            if self.function[phi].op != Op::PHI {
                break;
            }
            let mut args = self.function.args(phi).to_vec();
            if let Some(at) = (1..args.len()).step_by(2).find(|at| args[*at].kind() == Kind::Label(block)) {
                args.drain(at..=at + 1);
            }
            let (op, args) = if args.len() == 3 { (Op::COPY, vec![args[0], args[2]]) } else { (Op::PHI, args) };
            let new = self.function.make_with(op, &args);
            self.function[new].line = self.function[phi].line;
            self.function[phi] = self.function[new];
        }
    }
}
