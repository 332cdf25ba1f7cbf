//! Induction variables: pointers that a loop advances alike and that begin at one base become one
//! pointer and what is added to it.
//!
//! A pointer is a pair of PHIs of a loop header whose next value is `step + pointer` by one
//! IMAD.WIDE with invariant factors, or by a sum with carry of invariant words. If it begins at
//! `index * factor + base`, it is `index * factor + leader` in every iteration, where the leader
//! begins at the base and makes the same steps: equal modulo 2^64. So one register lives through
//! the loop instead of two, and no step is left. The leader is a pointer of the loop or, for
//! [`ENOUGH`] others, a new one.

mod shared;

use crate::analysis::PassCx;
use crate::analysis::def_use::is_free;
use crate::analysis::loops::{LoopId, Loops};
use crate::arrays::Each;
use crate::ori::cfg::Cfg;
use crate::ori::{Block, File, Function, InstId, Kind, Operand, VReg, table};
use crate::tables::{Mod, Mods, Op, Role};
use cranelift_entity::SecondaryMap;
use shared::{Shared, Sum};
use smallvec::SmallVec;

/// Pointers without a leader that are worth one.
const ENOUGH: usize = 3;

type Pair = [VReg; 2];

/// What a pointer is advanced by.
#[derive(Clone, PartialEq)]
enum Step {
    /// A product of two factors.
    Product(Mods, Operand, Operand),
    /// Two words.
    Sum(Operand, Operand),
}

/// A pair of PHIs that is advanced by a step.
struct Pointer {
    phis: [InstId; 2],
    now: Pair,
    next: Pair,
    init: Pair,
    step: Step,
    /// The instructions that advance it.
    makers: SmallVec<[InstId; 4]>,
}

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let (cfg, loops) = (cx.cfg(), cx.loops());
    if loops.all.is_empty() {
        cx.unchanged = true;
        return;
    }
    let mut facts = Facts::new(cx.function, &cfg);
    let mut shared = Shared::default();
    for (id, of) in loops.all.iter() {
        let pointers = facts.pointers(cx.function, &cfg, &loops, (id, of.header));
        for group in facts.groups(cx.function, &pointers) {
            let leader = facts.leader(cx.function, of.header, &pointers, &group);
            facts.share(cx.function, &mut shared, &pointers, &group, leader);
        }
    }
    if shared.any {
        shared.rewrite(cx.function, &cfg);
    }
}

/// Pointers with one base and one step: those that are derived from the leader, and the leader.
struct Group {
    base: Pair,
    leader: Option<usize>,
    derived: Vec<usize>,
}

struct Facts {
    /// What defines a register, and where.
    maker: SecondaryMap<VReg, Option<(Block, InstId)>>,
    /// PHIs that read a register, and other readers.
    phis: SecondaryMap<VReg, u32>,
    others: SecondaryMap<VReg, u32>,
}

impl Facts {
    fn new(function: &Function, cfg: &Cfg) -> Facts {
        let regs = function.regs().len();
        let mut facts = Facts { maker: table(regs), phis: table(regs), others: table(regs) };
        for block in &cfg.rpo {
            for inst in &function[*block] {
                function.for_each_def(*inst, |reg| facts.maker[reg] = Some((*block, *inst)));
                let readers = if function[*inst].op == Op::PHI { &mut facts.phis } else { &mut facts.others };
                function.for_each_use(*inst, |reg| readers[reg] += 1);
            }
        }
        facts
    }

    /// The pointers that a loop advances.
    fn pointers(&self, function: &Function, cfg: &Cfg, loops: &Loops, (id, header): (LoopId, Block)) -> Vec<Pointer> {
        let mut pointers = Vec::new();
        if cfg.preds[header].len() != 2 {
            return pointers;
        }
        for low in &function[header] {
            if function[*low].op != Op::PHI {
                break;
            }
            let Some((init, next)) = inputs(function, loops, id, *low) else { continue };
            let Some((_, maker)) = self.maker[next].filter(|(block, _)| loops.contains(id, *block)) else { continue };
            let Some((step, now, nexts, makers)) = self.step(function, loops, id, maker, next) else { continue };
            let own = |reg: VReg| self.maker[reg].filter(|(block, _)| *block == header).map(|(_, phi)| phi);
            let [Some(first), Some(second)] = now.each(own) else { continue };
            let Some((high, after)) = inputs(function, loops, id, second) else { continue };
            let outside = |reg: VReg| self.maker[reg].is_some_and(|(block, _)| !loops.contains(id, block));
            let fits = first == *low && function[second].op == Op::PHI && after == nexts[1] && next == nexts[0];
            let init = [init, high];
            if fits && init.into_iter().all(outside) && now.iter().chain(&nexts).all(|reg| is_free(function, *reg)) {
                pointers.push(Pointer { phis: [first, second], now, next: nexts, init, step, makers });
            }
        }
        pointers
    }

    /// The step by which an instruction that defines the low word advances a pair.
    fn step(
        &self,
        function: &Function,
        loops: &Loops,
        id: LoopId,
        maker: InstId,
        low: VReg,
    ) -> Option<(Step, Pair, Pair, SmallVec<[InstId; 4]>)> {
        let data = &function[maker];
        let fixed = |operand: Operand| {
            let mut fixed = true;
            function.for_each_reg(operand, |reg| {
                fixed &= self.maker[reg].is_some_and(|(block, _)| !loops.contains(id, block));
            });
            fixed
        };
        let arg = |inst: InstId, role: Role| function.arg(inst, role);
        if !data.guard.is_null() {
            return None;
        }
        if is_product(function, maker) {
            let (a, b) = (arg(maker, Role::A), arg(maker, Role::B));
            let step = Step::Product(data.mods, a, b);
            let makers = SmallVec::from_slice(&[maker]);
            return (fixed(a) && fixed(b)).then_some((
                step,
                pair(function, maker, Role::C)?,
                pair(function, maker, Role::D)?,
                makers,
            ));
        }
        // Nobody else may want the carry, which goes with the step.
        let carry = arg(maker, Role::Pu).as_reg().filter(|carry| self.others[*carry] == 1 && self.phis[*carry] == 0)?;
        let high = function[self.maker[low]?.0].iter().copied().find(|inst| {
            let data = &function[*inst];
            let reads = data.op == Op::IADD3 && data.guard.is_null() && arg(*inst, Role::Pp) == Operand::reg(carry);
            reads && arg(*inst, Role::D).as_reg().is_some()
        })?;
        let sum = |inst: InstId| data.op == Op::IADD3 && arg(inst, Role::C) == Operand::zero();
        let plain = |inst: InstId| arg(inst, Role::A).as_reg().filter(|reg| arg(inst, Role::A) == Operand::reg(*reg));
        let (now, next) = ([plain(maker)?, plain(high)?], [low, arg(high, Role::D).as_reg()?]);
        let (x, y) = (arg(maker, Role::B), arg(high, Role::B));
        let unused = [Role::Pu, Role::Pv].into_iter().all(|role| arg(high, role).as_reg().is_none());
        let once = unused && arg(high, Role::Pq) == Operand::never() && data.mods.get(Mod::X) == 0;
        let fits = sum(maker) && sum(high) && once && fixed(x) && fixed(y);
        fits.then(|| (Step::Sum(x, y), now, next, SmallVec::from_slice(&[maker, high])))
    }

    /// The pair that a pair is computed from by adding a product to it.
    fn base(&self, function: &Function, init: Pair) -> Option<(InstId, Pair)> {
        let (_, maker) = self.maker[init[0]]?;
        let mut free = is_product(function, maker);
        function.for_each_use(maker, |reg| free &= is_free(function, reg));
        let fits = free && pair(function, maker, Role::D) == Some(init);
        Some((maker, pair(function, maker, Role::C)?)).filter(|_| fits)
    }

    /// Groups of pointers that can share one, the largest first.
    fn groups(&self, function: &Function, pointers: &[Pointer]) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (at, pointer) in pointers.iter().enumerate() {
            // A PHI elsewhere would need the pair at the end of a block.
            let elsewhere =
                pointer.now.iter().any(|reg| self.phis[*reg] > 0) || pointer.next.iter().any(|reg| self.phis[*reg] > 1);
            let Some((_, base)) = self.base(function, pointer.init).filter(|_| !elsewhere) else { continue };
            let step = |group: &&mut Group| group.base == base && pointers[group.derived[0]].step == pointer.step;
            match groups.iter_mut().find(step) {
                Some(group) => group.derived.push(at),
                None => groups.push(Group { base, leader: None, derived: vec![at] }),
            }
        }
        crate::sorted::by_key(&mut groups, |group| std::cmp::Reverse(group.derived.len()));
        let mut taken = vec![false; pointers.len()];
        let mut leads = vec![false; pointers.len()];
        groups.retain_mut(|group| {
            group.derived.retain(|at| !leads[*at]);
            let Some(first) = group.derived.first() else { return false };
            let leader = |at: &usize| {
                !taken[*at] && pointers[*at].init == group.base && pointers[*at].step == pointers[*first].step
            };
            group.leader = (0..pointers.len()).find(leader);
            let enough = group.leader.is_some() || group.derived.len() >= ENOUGH;
            if enough {
                group.derived.iter().for_each(|at| taken[*at] = true);
                group.leader.iter().for_each(|at| leads[*at] = true);
            }
            enough
        });
        groups
    }

    /// Notes that the pointers of a group are computed from its leader.
    fn share(
        &self,
        function: &Function,
        shared: &mut Shared,
        pointers: &[Pointer],
        group: &Group,
        (now, next): (Pair, Pair),
    ) {
        for pointer in group.derived.iter().map(|at| &pointers[*at]) {
            let Some((init, _)) = self.base(function, pointer.init) else { continue };
            pointer.phis.iter().chain(&pointer.makers).for_each(|inst| shared.gone[*inst] = true);
            for (old, from) in [(pointer.now, now), (pointer.next, next)] {
                old.iter().for_each(|reg| shared.from[*reg] = Some(Sum { old, init, from }));
            }
            shared.any = true;
        }
    }

    /// The pair that leads a group, and its next value: both right behind the PHIs of the header.
    fn leader(&mut self, function: &mut Function, header: Block, pointers: &[Pointer], group: &Group) -> (Pair, Pair) {
        let model = &pointers[group.leader.unwrap_or(group.derived[0])];
        let (now, next) = match group.leader {
            Some(_) => (model.now, model.next),
            None => (model.now.each(|reg| function.new_like(reg)), model.next.each(|reg| function.new_like(reg))),
        };
        let mut makers = model.makers.clone();
        if group.leader.is_none() {
            for (word, phi) in model.phis.into_iter().enumerate() {
                let swap = |operand: Operand| match operand.as_reg() {
                    Some(reg) if reg == model.now[word] => Operand::reg(now[word]),
                    Some(reg) if reg == model.next[word] => Operand::reg(next[word]),
                    Some(reg) if reg == model.init[word] => Operand::reg(group.base[word]),
                    _ => operand,
                };
                let args: Vec<Operand> = function.args(phi).iter().map(|operand| swap(*operand)).collect();
                let new = function.make_with(Op::PHI, &args);
                function[header].insert(0, new);
                self.phis[group.base[word]] += 1;
            }
            makers = advance(function, model, now, next);
        } else {
            let (block, _) = self.maker[model.next[0]].unwrap_or((header, makers[0]));
            function[block].retain(|inst| !makers.contains(inst));
        }
        let phi = |inst: &InstId| function[*inst].op == Op::PHI;
        let at = function[header].iter().take_while(|inst| phi(inst)).count();
        function[header].splice(at..at, makers);
        (now, next)
    }
}

/// Makes the instructions that advance a pair as a pointer's.
fn advance(function: &mut Function, model: &Pointer, now: Pair, next: Pair) -> SmallVec<[InstId; 4]> {
    let carry = function.new_reg(File::P);
    let mut made = SmallVec::new();
    for (word, maker) in model.makers.iter().enumerate() {
        let args: SmallVec<[Operand; 8]> = function.args(*maker).into();
        let new = function.make_with(function[*maker].op, &args);
        (function[new].mods, function[new].line) = (function[*maker].mods, function[*maker].line);
        if let Step::Product(..) = model.step {
            for (role, regs) in [(Role::C, now), (Role::D, next)] {
                let vector = function.vector(&regs);
                let operand = function.arg(*maker, role).with_vector(vector);
                function.set_arg(new, role, operand);
            }
        } else {
            function.set_arg(new, Role::A, Operand::reg(now[word]));
            function.set_arg(new, Role::D, Operand::reg(next[word]));
            function.set_arg(new, [Role::Pu, Role::Pp][word], Operand::reg(carry));
        }
        made.push(new);
    }
    made
}

/// Whether an instruction is an unguarded IMAD.WIDE without carries.
fn is_product(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let carries = [Role::Pu, Role::Pp].into_iter().any(|role| function.arg(inst, role).as_reg().is_some());
    data.op == Op::IMAD_WIDE && data.guard.is_null() && !carries
}

/// The registers of a plain pair.
fn pair(function: &Function, inst: InstId, role: Role) -> Option<Pair> {
    let operand = function.arg(inst, role);
    let regs = function.vector_regs(operand.as_vector().filter(|_| operand == operand.plain())?);
    regs.try_into().ok()
}

/// The inputs of a PHI from outside of a loop and from inside.
fn inputs(function: &Function, loops: &Loops, id: LoopId, phi: InstId) -> Option<(VReg, VReg)> {
    let (mut outside, mut inside) = (None, None);
    for pair in function.args(phi)[1..].chunks_exact(2) {
        let (Kind::Label(from), Some(reg)) = (pair[0].kind(), pair[1].as_reg()) else { return None };
        let place = if loops.contains(id, from) { &mut inside } else { &mut outside };
        if place.replace(reg).is_some() {
            return None;
        }
    }
    Some((outside?, inside?))
}
