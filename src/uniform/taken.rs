//! What instructions outside the set take of what is in it: in a uniform register, or only in a
//! general one.

use super::candidates::Candidates;
use super::twins::Twin;
use crate::analysis::def_use::is_free;
use crate::arrays::Each;
use crate::legal::operands;
use crate::ori::{File, Function, InstId, Kind, Operand, VReg};
use crate::tables::ori::{Class, Direction};
use crate::tables::{Mod, Op, Prop, Role, value};
use smallvec::SmallVec;

/// The rank of a value that is taken last.
const LAST: u8 = 9;

/// Registers of an operand.
type Group = SmallVec<[VReg; 4]>;

/// What an instruction outside the set takes of what is in it.
#[derive(Clone, Default)]
pub struct Taken {
    /// In a uniform register.
    pub uniform: SmallVec<[VReg; 4]>,
    /// Only in a general register.
    pub general: SmallVec<[VReg; 4]>,
}

impl Candidates {
    /// What an instruction outside the set takes of what is in it: everything where that is
    /// encoded, else one operand, a computed one first, then one from a constant bank.
    pub fn taken(&mut self, function: &mut Function, inst: InstId) -> Taken {
        if self.is_aside(inst) {
            let mut general = SmallVec::new();
            function.for_each_use(inst, |reg| general.extend(Some(reg).filter(|reg| self.contains(*reg))));
            return Taken { uniform: SmallVec::new(), general };
        }
        if let Some(source) = handed(function, inst) {
            let uniform = Some(source).into_iter().filter(|reg| self.offers(*reg, inst)).collect();
            return Taken { uniform, general: SmallVec::new() };
        }
        if let Some(condition) = self.condition(function, inst) {
            return Taken { uniform: SmallVec::from_slice(&[condition]), general: SmallVec::new() };
        }
        let Some(within) = self.within(function, inst) else { return self.choose(function, inst) };
        if let Some((then, taken)) = self.asked[inst].checked_sub(1).map(|at| &self.answers[at as usize])
            && *then == within
        {
            return taken.clone();
        }
        let taken = self.choose(function, inst);
        self.answers.push((within, taken.clone()));
        self.asked[inst] = self.answers.len() as u32;
        taken
    }

    /// Which of the registers that an instruction reads are in the set, one bit each; `None` where
    /// they are too many. Nothing else that an answer depends on changes with the set.
    fn within(&self, function: &Function, inst: InstId) -> Option<u64> {
        let (mut bits, mut count) = (0, 0);
        function.for_each_use(inst, |reg| {
            bits |= u64::from(self.set.contains(reg)).checked_shl(count).unwrap_or(0);
            count += 1;
        });
        (count <= u64::BITS).then_some(bits)
    }

    pub(super) fn choose(&mut self, function: &mut Function, inst: InstId) -> Taken {
        let mut taken = Taken::default();
        let groups = self.groups(function, inst, &mut taken.general);
        if groups.is_empty() {
            return taken;
        }
        let all: SmallVec<[VReg; 4]> = groups.iter().flatten().copied().collect();
        let chosen = if self.takes(function, inst, &all) {
            Some(all.clone())
        } else if groups.len() > 1 {
            let mut ranked: SmallVec<[(u8, Group); 4]> = SmallVec::new();
            groups.into_iter().for_each(|group| ranked.push((self.rank(function, &group), group)));
            crate::sorted::by_key(&mut ranked, |ranked| ranked.0);
            ranked.into_iter().map(|ranked| ranked.1).find(|group| self.takes(function, inst, group))
        } else {
            None
        };
        let chosen = chosen.unwrap_or_default();
        for reg in all {
            // What an operand needs in a general register is there for all operands.
            let list_general = !chosen.contains(&reg);
            if list_general && !taken.general.contains(&reg) {
                taken.general.push(reg);
            } else if !list_general && !taken.general.contains(&reg) && !taken.uniform.contains(&reg) {
                taken.uniform.push(reg);
            }
        }
        taken
    }

    /// The registers of the set that an instruction reads in operands that could be uniform, by
    /// operand; the others go to `general`.
    fn groups(&self, function: &Function, inst: InstId, general: &mut Group) -> SmallVec<[Group; 4]> {
        let data = &function[inst];
        let mut groups: SmallVec<[Group; 4]> = SmallVec::new();
        let roles = data.op.info().roles;
        let in_set = |operand: Operand| {
            let mut regs = Group::new();
            function.for_each_reg(operand, |reg| regs.push(reg));
            regs
        };
        for (at, operand) in function.args(inst).iter().enumerate() {
            if function.direction(inst, at) != Direction::Use {
                continue;
            }
            let regs = in_set(*operand);
            let within = regs.iter().filter(|reg| self.offers(**reg, inst)).count();
            let fits = roles.get(at).is_some_and(|role| role.class == Class::Reg || role.class == Class::Pred);
            if within == 0 {
                continue;
            }
            if within < regs.len() || !fits || data.op.has(Prop::Pseudo) {
                general.extend(regs.into_iter().filter(|reg| self.set.contains(*reg)));
                continue;
            }
            if !groups.contains(&regs) {
                groups.push(regs);
            }
        }
        for operand in function.olds(inst).iter().copied().chain([data.guard]) {
            general.extend(in_set(operand).into_iter().filter(|reg| self.set.contains(*reg)));
        }
        groups.retain(|g| {
            !g.iter().any(|reg| general.contains(reg)) || {
                general.extend(g.iter().copied());
                false
            }
        });
        groups
    }

    /// 0 for a value that exists once. Of the others, those that no reader keeps in a general
    /// register come first, then those with several readers, which would all keep it there, and
    /// those from a constant bank before the rest.
    fn rank(&mut self, function: &mut Function, regs: &[VReg]) -> u8 {
        let mut least = LAST;
        for reg in regs {
            least = least.min(match self.definition[*reg] {
                _ if self.twins.of(*reg) == Twin::In => LAST,
                _ if !self.may_be_twice(function, *reg) => 0,
                Some((inst, _)) => {
                    let alone = self.readers(*reg).len() == 1;
                    let stays = self.stays_general(function, *reg);
                    1 + 4 * u8::from(stays) + 2 * u8::from(alone) + u8::from(function[inst].op != Op::LDC)
                }
                None => LAST,
            });
        }
        least
    }

    /// Whether a reader outside the set keeps a value in a general register, whatever else it reads
    /// in a uniform one.
    fn stays_general(&mut self, function: &mut Function, reg: VReg) -> bool {
        if let Some(known) = self.stays[reg] {
            return known;
        }
        let readers: SmallVec<[InstId; 16]> = SmallVec::from_slice(self.readers(reg));
        let stays =
            readers.into_iter().any(|reader| !self.has(function, reader) && !self.could_take(function, reader, reg));
        self.stays[reg] = Some(stays);
        stays
    }

    /// Whether an instruction takes a value in a uniform register if all else is in general ones.
    fn could_take(&mut self, function: &mut Function, inst: InstId, reg: VReg) -> bool {
        if self.is_aside(inst) {
            return false;
        }
        if handed(function, inst).is_some() || self.condition(function, inst).is_some() {
            return true;
        }
        let mut general = Group::new();
        let group = self.groups(function, inst, &mut general).into_iter().find(|group| group.contains(&reg));
        group.is_some_and(|group| self.takes(function, inst, &group))
    }

    /// Whether an instruction is encoded with these registers of the set in the uniform file, its
    /// operands exchanged if need be.
    fn takes(&mut self, function: &mut Function, inst: InstId, regs: &[VReg]) -> bool {
        if function.args(inst).iter().any(|operand| matches!(operand.kind(), Kind::Symbol(_))) {
            return false;
        }
        operands::takes_uniform(function, inst, &self.encodes, &self.trial, regs)
    }
}

/// The value that an instruction hands over to any register of the uniform file: where it is there
/// already, it is copied.
pub fn handed(function: &Function, inst: InstId) -> Option<VReg> {
    let data = &function[inst];
    // Whether all lanes agree says nothing of what they agree on.
    if !data.op.has(Prop::HandsOver) || !data.guard.is_null() || data.mods.get(Mod::Vote) == value::vote::EQ {
        return None;
    }
    let (mut results, mut sources) = (SmallVec::<[VReg; 2]>::new(), SmallVec::<[VReg; 2]>::new());
    function.for_each_def(inst, |reg| results.push(reg));
    function.for_each_use(inst, |reg| sources.push(reg));
    let plain = |role| [Operand::NULL, function.arg(inst, role).plain()].contains(&function.arg(inst, role));
    let ([result], [source]) = (&results[..], &sources[..]) else { return None };
    let files = [*result, *source].each(|reg| function[reg].file);
    let fits = matches!(files, [File::UR, File::R] | [File::UP, File::P]) && plain(Role::A) && plain(Role::Pp);
    (fits && is_free(function, *result) && is_free(function, *source)).then_some(*source)
}
