//! What counts a loop's iterations: a register that each iteration changes by a constant, and a
//! comparison of it with a value that the loop leaves alone.
//!
//! Outside SSA form: a register of the loop with one definition there has this iteration's value
//! behind it and the last one's before it. Only definitions in the header and the latch count,
//! which every iteration executes.

use super::Shape;
use crate::arrays::Each;
use crate::ori::cfg::Cfg;
use crate::ori::commute::{holds, inverted, mirrored};
use crate::ori::{Block, Function, InstId, Kind, Operand, VReg};
use crate::tables::{Mod, Op, Role, value};

/// Most copies and sums between two values of a counter.
const MOST_STEPS: usize = 6;
/// Most iterations of a loop whose number is known.
const MOST_ITERATIONS: u32 = 1 << 16;

/// The counter of a loop.
pub struct Counter {
    /// Holds the count at the start of each iteration.
    pub reg: VReg,
    /// What an iteration adds to it.
    pub step: i64,
    /// What the iteration has added where it compares.
    pub offset: i64,
    /// The comparison of the counter with the bound that holds while the loop goes on.
    cmp: u8,
    /// Whether it is one of signed words.
    signed: bool,
    /// A register that the loop does not define, an immediate or zero.
    pub bound: Operand,
    /// The comparison, if behind the latch it gives the same result again.
    pub compare: Option<InstId>,
    /// Its result, and what it is while the loop goes on; only the latch's branch reads it.
    pub result: (VReg, bool),
}

/// A place in the loop: number of the block, index in it.
type Place = (usize, usize);

struct Body<'a> {
    function: &'a Function,
    cfg: &'a Cfg,
    shape: &'a Shape,
}

/// Finds the counter of a loop.
pub fn find(function: &Function, cfg: &Cfg, shape: &Shape) -> Option<Counter> {
    let body = Body { function, cfg, shape };
    let branch = function[shape.latch][function.first_terminator(shape.latch)];
    let guard = function[branch].guard;
    let result = guard.as_reg()?;
    let wanted = guard.not() == (function.branch_target(branch) == Some(shape.exit));
    let (place, compare) = body.definition(result)?;
    if !compares(function, compare) || body.reads(branch, guard) {
        return None;
    }
    let cmp = function[compare].mods.get(Mod::Cmp);
    let cmp = if wanted { cmp } else { inverted(cmp, false)? };
    let [a, b] = [Role::A, Role::B].each(|role| function.arg(compare, role));
    let counter = |counted: Operand, bound: Operand, cmp: u8| {
        let reg = counted.as_reg().filter(|reg| counted == Operand::reg(*reg))?;
        body.counter(reg, bound, cmp, (place, compare), (result, wanted))
    };
    counter(a, b, cmp).or_else(|| counter(b, a, mirrored(cmp)))
}

/// Whether an instruction is a comparison of two words and nothing else.
fn compares(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let pp = function.arg(inst, Role::Pp);
    let alone = (pp.is_null() || pp == Operand::always()) && function.arg(inst, Role::Pq).is_null();
    data.op == Op::ISETP && alone && data.mods.get(Mod::Ex) == value::ex::NONE
}

impl Body<'_> {
    /// The counter that a comparison at a place reads, if it moves towards the bound.
    fn counter(
        &self,
        counted: VReg,
        bound: Operand,
        cmp: u8,
        (place, compare): (Place, InstId),
        result: (VReg, bool),
    ) -> Option<Counter> {
        if bound != bound.plain() || !self.keeps(bound) {
            return None;
        }
        let (reg, offset) = self.carried(counted, place)?;
        let step = self.step(reg)?;
        let towards = match cmp {
            value::cmp::LT | value::cmp::LE => step > 0,
            value::cmp::GT | value::cmp::GE => step < 0,
            value::cmp::NE => step != 0,
            _ => false,
        };
        let along = offset == 0 || (offset > 0) == (step > 0);
        let signed = self.function[compare].mods.get(Mod::Sign) != value::sign::U32;
        let again = self.definition(counted).is_some_and(|(defined, _)| defined < place);
        let compare = Some(compare).filter(|_| again);
        (towards && along).then_some(Counter { reg, step, offset, cmp, signed, bound, compare, result })
    }

    /// The only definition of a register in the loop, if every iteration executes it unguarded.
    fn definition(&self, reg: VReg) -> Option<(Place, InstId)> {
        let mut found = None;
        for block in &self.shape.blocks {
            for (at, inst) in self.function[*block].iter().enumerate() {
                let mut defines = false;
                self.function.for_each_def(*inst, |def| defines |= def == reg);
                if !defines {
                    continue;
                }
                let always = [self.shape.header, self.shape.latch].contains(block);
                if found.is_some() || !always || !self.function[*inst].guard.is_null() {
                    return None;
                }
                found = Some(((self.cfg.number[*block], at), *inst));
            }
        }
        found
    }

    /// Whether an instruction other than this branch reads the register of an operand.
    fn reads(&self, branch: InstId, operand: Operand) -> bool {
        let mut read = false;
        for inst in self.shape.blocks.iter().flat_map(|block| &self.function[*block]) {
            self.function.for_each_use(*inst, |reg| read |= *inst != branch && operand.as_reg() == Some(reg));
        }
        read
    }

    /// Whether the loop leaves an operand alone.
    fn keeps(&self, operand: Operand) -> bool {
        let mut kept = match operand.kind() {
            Kind::Reg(_) | Kind::Zero => true,
            Kind::Imm(_) => return true,
            _ => return false,
        };
        for inst in self.shape.blocks.iter().flat_map(|block| &self.function[*block]) {
            self.function.for_each_def(*inst, |def| kept &= operand.as_reg() != Some(def));
        }
        kept
    }

    /// What a register is the sum of, where a copy or a sum with a constant defines it.
    fn source(&self, inst: InstId) -> Option<(VReg, i64)> {
        let function = self.function;
        let arg = |role: Role| function.arg(inst, role);
        let plain = |operand: Operand| operand.as_reg().filter(|reg| operand == Operand::reg(*reg));
        match function[inst].op {
            Op::COPY => Some((plain(arg(Role::A))?, 0)),
            Op::MOV if arg(Role::Lanes).is_null() => Some((plain(arg(Role::A))?, 0)),
            Op::IADD3 => {
                let terms = [arg(Role::A), arg(Role::B), arg(Role::C)];
                let alone = function[inst].mods.get(Mod::X) == value::x::NONE;
                let reg = terms.iter().find_map(|term| plain(*term))?;
                let added = terms.iter().find_map(|term| function.word_value(*term).filter(|value| *value != 0))?;
                let zeros = terms.iter().filter(|term| term.kind() == Kind::Zero).count();
                (alone && zeros == 1).then_some((reg, i64::from(added as i32)))
            }
            _ => None,
        }
    }

    /// The register whose value of the last iteration a register at a place comes from, and what
    /// was added to it since.
    fn carried(&self, mut reg: VReg, mut place: Place) -> Option<(VReg, i64)> {
        let mut sum = 0;
        for _ in 0..MOST_STEPS {
            let (defined, inst) = self.definition(reg)?;
            if defined >= place {
                return Some((reg, sum));
            }
            let (from, added) = self.source(inst)?;
            (reg, sum, place) = (from, sum + added, defined);
        }
        None
    }

    /// What an iteration adds to a register.
    fn step(&self, reg: VReg) -> Option<i64> {
        let (carried, step) = self.carried(reg, (usize::MAX, 0))?;
        (carried == reg).then_some(step)
    }
}

/// The number of iterations, if the counter begins at a constant and ends at one.
pub fn iterations(function: &Function, cfg: &Cfg, shape: &Shape, counter: &Counter) -> Option<u32> {
    let bound = function.word_value(counter.bound)?;
    let mut now = start(function, cfg, shape, counter.reg)?;
    for count in 1..=MOST_ITERATIONS {
        if !counter.goes_on(now.wrapping_add(counter.offset as u32), bound) {
            return Some(count);
        }
        now = now.wrapping_add(counter.step as u32);
    }
    None
}

/// The constant that a register holds where the loop is entered: set in a block on the only way to
/// the header.
fn start(function: &Function, cfg: &Cfg, shape: &Shape, reg: VReg) -> Option<u32> {
    let mut at = shape.header;
    let mut inside = Some(shape.latch);
    for _ in 0..cfg.rpo.len() {
        let mut before = cfg.preds[at].iter().copied().filter(|pred| Some(*pred) != inside);
        let (from, None) = (before.next()?, before.next()) else { return None };
        (at, inside) = (from, None);
        if let Some(value) = last_value(function, at, reg) {
            return value;
        }
    }
    None
}

/// The constant that a block leaves in a register; `None` where it does not define it.
fn last_value(function: &Function, block: Block, reg: VReg) -> Option<Option<u32>> {
    let defines = |inst: &&InstId| {
        let mut defines = false;
        function.for_each_def(**inst, |def| defines |= def == reg);
        defines
    };
    let inst = *function[block].iter().rev().find(defines)?;
    let data = &function[inst];
    let whole = data.op == Op::MOV && data.guard.is_null() && function.arg(inst, Role::Lanes).is_null();
    Some(function.word_value(function.arg(inst, Role::A)).filter(|_| whole))
}

impl Counter {
    /// Whether the loop goes on after this comparison.
    fn goes_on(&self, counted: u32, bound: u32) -> bool {
        let order = if self.signed { (counted as i32).cmp(&(bound as i32)) } else { counted.cmp(&bound) };
        holds(self.cmp, order) == Some(true)
    }

    /// Whether what is certain is asked with a signed comparison: where the loop's own asks for a
    /// difference alone, either will do.
    pub fn orders_signed(&self) -> bool {
        self.signed || self.cmp == value::cmp::NE
    }

    /// How far the bound must be from the counter for so many iterations to be certain: the
    /// counter is less than the bound by more than this, or greater if it falls; `None` where the
    /// comparison itself says no more.
    pub fn distance(&self, iterations: u32) -> Option<u32> {
        let reach = (self.offset + i64::from(iterations - 2) * self.step).abs();
        let equal = matches!(self.cmp, value::cmp::LE | value::cmp::GE);
        let distance = reach - i64::from(equal);
        (0..1 << 30).contains(&distance).then_some(distance as u32)
    }
}
