//! Checks an allocation independently of the allocator.
//!
//! Compares the function before allocation with the function after it, which still has its markers
//! (COPY, UNDEF and rematerialized definitions of spilled registers). A forward dataflow analysis
//! tracks for each place (register, word of the frame, rematerializable expression) the virtual
//! registers whose current value it holds. Each use of an original instruction must read a place
//! that holds its register; code that the allocator added may only move values. Where paths join,
//! the states are intersected. A call empties the registers that it may clobber, and so does, for
//! uniform registers, a branch behind which other lanes may call; a fixed register must have its
//! number; a device function must return with the registers of `registers.ron` unchanged. A
//! register without a definition on the path may be read anywhere.

mod state;

use super::ranges::Gone;
use super::remat::{Recompute, recompute};
use super::{bundles, is_kept};
use crate::ori::cfg::Cfg;
use crate::ori::liveness::{Liveness, RegSet};
use crate::ori::{Block, Convention, File, Function, InstId, Kind, Operand, STACK_POINTER, VReg};
use crate::sorted::SortedSet;
use crate::tables::ori::Direction;
use crate::tables::registers::Callee;
use crate::tables::{Mod, Mods, Op, Prop, Role, value};
use cranelift_entity::{EntityRef, SecondaryMap};
use state::{Place, State, Value};

struct Checker<'a> {
    before: &'a Function,
    after: &'a Function,
    gone: &'a Gone,
    expressions: Vec<(Op, Mods, Option<u64>, Operand)>,
    errors: Vec<String>,
    report: bool,
}

/// Returns all errors of an allocation. `branches` are the blocks at whose end some lanes may go to
/// a call while others go on, with what is called.
pub fn check(before: &Function, after: &Function, gone: &Gone, branches: &[(Block, Callee)]) -> Vec<String> {
    let cfg = Cfg::new(after);
    let mut checker = Checker { before, after, gone, expressions: Vec::new(), errors: Vec::new(), report: false };
    let mut entry: SecondaryMap<Block, Option<State>> = SecondaryMap::new();
    entry[after.entry()] = Some(checker.start());
    // Registers that the original function does not read any more need not be tracked; otherwise
    // states grow with the function.
    let live = Liveness::at_start(before, &Cfg::new(before));
    let kept = guarded_definitions(before);
    let mut work: SortedSet<usize> = [0].into();
    while let Some(number) = work.pop_first() {
        let block = cfg.rpo[number];
        let mut state = entry[block].clone().unwrap_or_default();
        for inst in &after[block] {
            checker.step(*inst, &mut state);
        }
        for (_, callee) in branches.iter().filter(|(branch, _)| *branch == block) {
            let changed = bundles::changed(*callee);
            let shared = |file| matches!(file, File::UR | File::UP);
            state.lose(|file, number| shared(file) && changed[file as usize].contains(i32::from(number)));
        }
        for succ in &cfg.succs[block] {
            let mut state = state.clone();
            state.keep(|reg| live.contains(*succ, reg) || kept.contains(reg));
            let joined = match &entry[*succ] {
                None => state,
                Some(old) => old.join(&state),
            };
            if entry[*succ].as_ref() != Some(&joined) {
                entry[*succ] = Some(joined);
                work.insert(cfg.number[*succ]);
            }
        }
    }
    checker.report = true;
    for block in &cfg.rpo {
        let mut state = entry[*block].clone().unwrap_or_default();
        for inst in &after[*block] {
            checker.step(*inst, &mut state);
        }
    }
    checker.errors
}

/// Registers that guarded instructions define, which therefore read their old values.
fn guarded_definitions(function: &Function) -> RegSet {
    let mut set = RegSet::new(function.regs().len());
    for inst in function.layout().iter().flat_map(|b| &function[*b]) {
        if !function[*inst].guard.is_null() {
            function.for_each_def(*inst, |reg| {
                set.insert(reg);
            });
        }
    }
    set
}

impl Checker<'_> {
    fn start(&self) -> State {
        let mut state = State::new(self.before.regs().len());
        if self.after.attributes().convention == Convention::Device && !self.after.attributes().private {
            for n in (0..256).filter(|n| is_kept(File::R, *n)) {
                state.add(Place::Register(File::R, n), Value::Came(n));
            }
        }
        state
    }

    fn wrong(&mut self, inst: InstId, what: &str) {
        if self.report {
            self.errors.push(format!("{inst} {}: {what}", crate::ori::text::instruction(self.after, inst)));
        }
    }

    fn place(&self, reg: VReg) -> Option<Place> {
        let data = &self.after[reg];
        data.phys.filter(|_| !self.gone[reg]).map(|p| Place::Register(data.file, p))
    }

    fn step(&mut self, inst: InstId, state: &mut State) {
        if inst.index() >= self.before.insts().len() {
            return self.added(inst, state);
        }
        let data = &self.before[inst];
        match data.op {
            Op::UNDEF => self.before.for_each_def(inst, |reg| {
                state.forget(reg);
                state.set_open(reg, true);
            }),
            Op::COPY if data.guard.is_null() && self.plain(inst) => self.copy(inst, state),
            _ => self.original(inst, state),
        }
    }

    fn plain(&self, inst: InstId) -> bool {
        let source = self.before.arg(inst, Role::A);
        source == source.plain() && source.as_reg().is_some()
    }

    fn copy(&mut self, inst: InstId, state: &mut State) {
        let reg = |f: &Function, role| f.arg(inst, role).as_reg();
        let (Some(d), Some(a)) = (reg(self.before, Role::D), reg(self.before, Role::A)) else { return };
        let now = |role| reg(self.after, role).and_then(|r| self.place(r));
        let (to, from) = (now(Role::D), now(Role::A));
        if let (Some(_), Some(from)) = (to, from)
            && self.before[a].phys.is_none()
            && !state.holds(from, Value::Of(a))
        {
            self.wrong(inst, &format!("{a} is not where it is read from"));
        }
        let moved = from.map(|f| state.at(f));
        let (open, same) = (state.is_open(a), d == a);
        if !same {
            state.forget(d);
        }
        if let (Some(to), Some(moved)) = (to, moved) {
            let moved = moved.into_iter().filter(|v| same || v.register() != Some(d));
            state.set(to, moved.collect());
        }
        for (old, new) in [(Value::Of(a), Value::Of(d)), (Value::AsNumber(a), Value::AsNumber(d))] {
            for place in state.places(old) {
                state.add(place, new);
            }
        }
        state.set_open(d, open);
        if self.before[a].phys.is_some()
            && let Some(to) = to
        {
            state.add(to, Value::Of(d));
        }
        self.fixed(inst, d, to);
        self.fixed(inst, a, from);
    }

    fn fixed(&mut self, inst: InstId, reg: VReg, place: Option<Place>) {
        let data = &self.before[reg];
        if let Some(number) = data.fixed.or(data.phys)
            && place != Some(Place::Register(data.file, number))
        {
            self.wrong(inst, &format!("{reg} is not in {}{number}", data.file.name()));
        }
    }

    /// Registers of an operand before allocation, with their places after it.
    fn pairs(&self, op: Op, old: Operand, new: Operand) -> Vec<(VReg, Option<Place>)> {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        self.before.for_each_reg(old, |r| one.push(r));
        self.after.for_each_reg(new, |r| two.push(r));
        let adjacent = two.windows(2).all(|w| {
            let number = |r: VReg| self.after[r].phys.map(i32::from);
            self.gone[w[0]] || self.gone[w[1]] || number(w[1]) == number(w[0]).map(|n| n + 1)
        });
        let aligned = two.first().is_none_or(|r| {
            let multiple = super::register_tuples::alignment(op, two.len()) as u16;
            self.gone[*r] || self.after[*r].phys.is_some_and(|n| n % multiple == 0)
        });
        let fits = adjacent && aligned && one.len() == two.len();
        one.into_iter().enumerate().map(|(i, r)| (r, if fits { self.place(two[i]) } else { None })).collect()
    }

    /// The operands that an instruction still has: EXIT and RET drop the implicit uses of barriers
    /// that were spilled to general registers.
    fn same_args(&self, inst: InstId) -> Vec<usize> {
        let (args, op) = (self.before.args(inst), self.before[inst].op);
        let extra = args.len() - self.before.extras(inst).0.len() - self.before.extras(inst).1.len();
        let dropped = |i: usize| {
            let held = args[i].as_reg().filter(|r| self.before[*r].file == File::B && self.gone[*r]);
            op.has(Prop::Leaves) && i >= extra && held.is_some()
        };
        (0..args.len()).filter(|i| !dropped(*i)).collect()
    }

    fn original(&mut self, inst: InstId, state: &mut State) {
        let (before, after) = (self.before, self.after);
        let (same, op) = (self.same_args(inst), after[inst].op);
        if same.len() != after.args(inst).len() || op != before[inst].op {
            return self.wrong(inst, "is another instruction now");
        }
        let (mut uses, mut defs) = (self.pairs(op, before[inst].guard, after[inst].guard), Vec::new());
        for (i, new) in same.into_iter().zip(after.args(inst)) {
            let pairs = self.pairs(op, before.args(inst)[i], *new);
            match before.direction(inst, i) {
                Direction::Use => uses.extend(pairs),
                Direction::Def => defs.extend(pairs),
                Direction::None => {}
            }
        }
        let op = before[inst].op;
        if !before[inst].guard.is_null() {
            // If the guard is false, the old values stay.
            uses.extend(defs.iter().copied());
        }
        for (reg, place) in uses {
            self.fixed(inst, reg, place);
            let reserved = before[reg].phys.is_some();
            if !reserved && !place.is_some_and(|p| state.holds(p, Value::Of(reg))) {
                self.wrong(inst, &format!("{reg} is not where it is read from"));
            }
        }
        if op == Op::RET {
            self.returned(inst, state);
        }
        if let Some(callee) = before.callee(inst) {
            let changed = bundles::changed(callee);
            state.lose(|file, number| changed[file as usize].contains(i32::from(number)));
        }
        defs.iter().for_each(|(reg, _)| state.forget(*reg));
        if defs.iter().any(|(reg, _)| before[*reg].phys == Some(STACK_POINTER)) {
            state.moved = op != Op::LDL;
        }
        for (reg, place) in defs {
            match place {
                Some(place) => {
                    self.fixed(inst, reg, Some(place));
                    state.clear(place);
                    state.add(place, Value::Of(reg));
                }
                None if self.gone[reg] => {}
                None => self.wrong(inst, &format!("{reg} has no place")),
            }
            if let Some(how) = recompute(before, inst, reg) {
                let expression = self.expression(before, how);
                state.add(expression, Value::Of(reg));
            }
        }
    }

    fn returned(&mut self, inst: InstId, state: &State) {
        if self.after.attributes().convention != Convention::Device {
            return;
        }
        let mut named = Vec::new();
        self.after.for_each_use(inst, |reg| named.push(self.after[reg].phys));
        let kept = |n: &u16| is_kept(File::R, *n) && *n != STACK_POINTER && !self.after.attributes().private;
        for n in (0..256).filter(|n| kept(n) && !named.contains(&Some(*n))) {
            if !state.holds(Place::Register(File::R, n), Value::Came(n)) {
                self.wrong(inst, &format!("R{n} is not restored"));
            }
        }
        if state.stack != 0 {
            self.wrong(inst, "the stack pointer is not restored");
        }
    }

    /// The place of a rematerializable value.
    fn expression(&mut self, function: &Function, how: Recompute) -> Place {
        let number = function.imm_value(how.source);
        let source = if number.is_some() { Operand::NULL } else { how.source };
        let key = (how.op, how.mods, number, source);
        let index = self.expressions.iter().position(|e| *e == key).unwrap_or_else(|| {
            self.expressions.push(key);
            self.expressions.len() - 1
        });
        Place::Expression(index)
    }

    /// An instruction that the allocator added.
    fn added(&mut self, inst: InstId, state: &mut State) {
        let f = self.after;
        if self.gone.is_marker(inst) {
            return;
        }
        let sp = |o: Operand| o.as_reg().is_some_and(|r| f.stack_pointer() == Some(r));
        let (d, a) = (f.arg(inst, Role::D), f.arg(inst, Role::A));
        let place = |o: Operand| o.as_reg().filter(|_| o == o.plain()).and_then(|r| self.place(r));
        let op = f[inst].op;
        match op {
            Op::LDC if sp(d) => state.stack = 0,
            Op::IADD3 if sp(d) && sp(a) => {
                let bytes = f.imm_value(f.arg(inst, Role::B)).unwrap_or(0);
                state.stack += i64::from(bytes as u32 as i32);
            }
            Op::STL | Op::LDL if sp(a) => self.frame_access(inst, state),
            // The check that the frame fits keeps no value in what it writes.
            Op::S2R if f.attributes().checks_stack => place(d).into_iter().for_each(|p| state.clear(p)),
            Op::ISETP if f.attributes().checks_stack && sp(a) => {
                place(f.arg(inst, Role::Pu)).into_iter().for_each(|p| state.clear(p));
            }
            Op::BPT if f.attributes().checks_stack => {}
            Op::SEL | Op::USEL => {
                let p = f.arg(inst, Role::Pp);
                let shape = a == Operand::zero() && f.imm_value(f.arg(inst, Role::B)) == Some(1) && p.not();
                self.converted(inst, state, place(d), place(p.inverted()), shape, |v| match v {
                    Value::Of(reg) => Some(Value::AsNumber(reg)),
                    _ => None,
                });
            }
            Op::ISETP | Op::UISETP => {
                let shape = f.arg(inst, Role::B) == Operand::zero() && f[inst].mods.get(Mod::Cmp) == value::cmp::NE;
                self.converted(inst, state, place(f.arg(inst, Role::Pu)), place(a), shape, |v| match v {
                    Value::AsNumber(reg) => Some(Value::Of(reg)),
                    _ => None,
                });
            }
            Op::COPY | Op::MOV | Op::R2UR if place(a).is_some() => {
                self.converted(inst, state, place(d), place(a), true, Some);
            }
            Op::BMOV_B => self.converted(inst, state, place(f.arg(inst, Role::B)), place(a), true, Some),
            Op::BMOV_R => {
                let from = place(f.arg(inst, Role::B));
                self.converted(inst, state, place(d), from, true, Some);
                from.into_iter().for_each(|p| state.clear(p));
            }
            _ => self.recomputed(inst, state),
        }
    }

    fn converted(
        &mut self,
        inst: InstId,
        state: &mut State,
        to: Option<Place>,
        from: Option<Place>,
        shape: bool,
        change: impl Fn(Value) -> Option<Value>,
    ) {
        let unguarded = self.after[inst].guard.is_null();
        match (to, from) {
            (Some(to), Some(from)) if shape && unguarded => {
                let values = state.at(from).into_iter().filter_map(change).collect();
                state.set(to, values);
            }
            _ => self.wrong(inst, "is not a move"),
        }
    }

    fn frame_access(&mut self, inst: InstId, state: &mut State) {
        let f = self.after;
        let load = f[inst].op == Op::LDL;
        let operand = f.arg(inst, if load { Role::D } else { Role::B });
        let offset = f.imm_value(f.arg(inst, Role::Off)).unwrap_or(0) as i64;
        let mut regs = Vec::new();
        f.for_each_reg(operand, |r| regs.push(r));
        let bytes = 4 * regs.len() as i64;
        let inside =
            offset >= i64::from(f.attributes().local_bytes) && offset + bytes <= i64::from(f.attributes().frame_bytes);
        if state.moved {
            self.wrong(inst, "reaches for the frame while the stack pointer is elsewhere");
        }
        if !inside || offset % bytes != 0 || matches!(operand.kind(), Kind::Null) {
            self.wrong(inst, "is outside the part of the frame for spilled values, or not aligned");
        }
        for (i, reg) in regs.into_iter().enumerate() {
            let word = Place::Frame(state.stack + offset + 4 * i as i64);
            let Some(register) = self.place(reg) else {
                self.wrong(inst, &format!("{reg} has no place"));
                continue;
            };
            let (to, from) = if load { (register, word) } else { (word, register) };
            let values = state.at(from);
            state.set(to, values);
        }
    }

    fn recomputed(&mut self, inst: InstId, state: &mut State) {
        let reg = self.after.arg(inst, Role::D).as_reg();
        let place = reg.and_then(|r| self.place(r));
        let how = reg.and_then(|r| recompute(self.after, inst, r));
        let (Some(place), Some(how)) = (place, how) else {
            return self.wrong(inst, "is nothing that an allocator adds");
        };
        let expression = self.expression(self.after, how);
        let values = state.at(expression);
        state.set(place, values);
    }
}
