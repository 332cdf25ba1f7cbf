//! AllocateRegisters: assigns physical registers to all virtual registers, with spilling.
//!
//! Runs on a function out of SSA form. Afterwards every register that an instruction names has a
//! physical number; COPY, UNDEF and ENTRY are gone; the frame is laid out and the stack pointer
//! set. Each round computes live ranges (`ranges`), gives every register tuple a position in a
//! class or copies its operands (`register_tuples`), coalesces copies (`bundles`), and places each
//! class (`pressure`, `assign`) or chooses what to spill. Where a class finds no place although
//! few enough registers live, a few cheap values are spilled first ([`Choice::relieve_at`]): a
//! wide tuple makes room only at the cost of all that stands there. If something is spilled,
//! `spill` rewrites the function and the next round begins. `frame` completes the function. `check`
//! verifies the result independently.
//!
//! Guarantees:
//! - Two registers that are live at once never share a physical register. A tuple gets adjacent
//!   registers, the first at a multiple of its length (rounded up to a power of two, at most
//!   [`register_tuples::WIDEST`]).
//! - A `RegData::phys` is reserved in the whole function and assigned to nothing else.
//! - A `RegData::fixed` is honoured over the register's own live range. Values move in and out by
//!   the copies that lowering emitted, which are coalesced if nothing interferes.
//! - No value lives across an instruction with the property `clobbers` in a register that
//!   `registers.ron` does not list; nor, in a uniform register, across a branch from which other
//!   lanes may come to such an instruction (`analysis::calls_apart`).
//! - No general register is above the limit: that of the target or `Function::max_registers`, less
//!   the two that the count in the cubin adds; after `setmaxnreg`, above the limit there (`zones`).
//! - A device function ([`Convention::Device`](crate::ori::Convention)) saves the callee-saved
//!   registers that it uses after ENTRY and restores them before each RET.
//! - A function is refused only if a single instruction names more registers than there are.
//!
//! Termination: every round that spills strictly decreases the tuple (number of spillable UP, of
//! spillable UR, P and B, of spillable R by generation) in lexicographic order. UP spills to UR;
//! UR, P and B spill to R (always new registers that may be spilled); R spills to memory. A
//! register that spill code introduces either lives around one instruction and is never spilled, or
//! serves several reads in one block and may be spilled again, without another store. Its
//! replacements serve reads that are close together, and theirs serve single instructions.
//!
//! How lowering writes a call:
//! ```text
//! COPY d=r10 a=r1                      r10 = Function::new_fixed(File::R, 4), fresh for every call
//! COPY d=r11 a=r2                      r11 = new_fixed(File::R, 5)
//! CALL target=... in(r10 r11) out(r12) Function::set_extras(call, uses, defs);
//!                                      r12 = new_fixed(File::R, 4)
//! COPY d=r3 a=r12
//! ```
//! In a tuple of fixed registers only the first one needs a fixed number. A device function begins
//! with `ENTRY out(r4 r5 …)` of fixed registers and copies them; RET reads its results as implicit
//! uses. `Function::stack_register` is R1, which no instruction sets before this phase. Offsets
//! below `local_bytes` belong to lowering. Incoming stack arguments are addressed from R1 + 0 and
//! listed in `Function::above_frame`. `Function::frame_bytes` is the size of the finished frame.

mod addresses;
mod assign;
pub mod bundles;
pub mod check;
pub mod frame;
pub mod interference;
pub mod lower_copies;
mod packing;
pub mod predicate_words;
pub mod pressure;
pub mod ranges;
pub mod register_tuples;
pub mod remat;
pub mod rematerialize;
pub mod same_values;
pub mod spill;
pub mod spill_slots;
pub mod spill_weights;
mod spread;
mod word_pairs;
pub mod zones;

use crate::analysis::calls_apart::{branches_before_calls, calls_functions};
use crate::analysis::{Loops, PassCx};
use crate::ori::cfg::Cfg;
use crate::ori::liveness::Liveness;
use crate::ori::{Block, Convention, File, Function, STACK_POINTER, VReg, table, table_of};
use crate::tables::Feature;
use crate::tables::registers::{Callee, first_kept};
use assign::Assigner;
use bundles::{Barred, Classes};
use cranelift_entity::SecondaryMap;
use interference::Mask;
use pressure::Choice;
use ranges::{Gone, Ranges};
use remat::recompute;
use same_values::Same;
use spill::{Home, Made, Spiller};
use spill_slots::Run;
use spill_weights::{Definition, Weights};
use std::cell::OnceCell;
use std::sync::LazyLock;

/// Registers that the count in a cubin includes beyond the highest one used. Source: measured on
/// 200 cubins.
pub const EXTRA_REGISTERS: u32 = 2;

/// Rounds that spill a little where much would have to make room.
const TRIES: u32 = 12;
/// Relative cost of spilling a value that already has a spill slot, which need not be stored again.
const IN_FRAME: f64 = 0.5;

/// Files in the order of their numbers.
const FILES: [File; 6] = [File::R, File::UR, File::P, File::UP, File::B, File::UB];

/// Allocates registers.
///
/// # Errors
///
/// The file that ran out of registers, a fixed register that cannot have its number, or in debug
/// builds the errors that `check` found.
pub fn run(cx: &mut PassCx) -> Result<(), String> {
    let (cfg, loops, live) = (cx.cfg(), cx.loops(), cx.liveness());
    let varying = calls_functions(cx.function).then(|| cx.divergence());
    let branches = varying.map_or_else(Vec::new, |varying| branches_before_calls(cx.function, &cfg, &varying));
    let function = &mut *cx.function;
    let before = cfg!(debug_assertions).then(|| function.clone());
    let first_new = function.insts().len() as u32;
    let gone = place(function, &cfg, &loops, Some(&*live), &branches)?;
    if let Some(before) = before {
        let wrong = check::check(&before, function, &gone, &branches);
        if !wrong.is_empty() {
            return Err(format!("broken invariant: {}", wrong.join("; ")));
        }
    }
    lower_copies::run(function, &gone, first_new);
    Ok(())
}

/// Allocates, but keeps what the checker needs: copies, and markers that name the spilled
/// registers, which are returned. `live` are the registers that live at the ends of blocks, if that
/// is known; `branches` those where some lanes may go to a call.
pub fn place(
    function: &mut Function,
    cfg: &Cfg,
    loops: &Loops,
    live: Option<&Liveness>,
    branches: &[(Block, Callee)],
) -> Result<Gone, String> {
    let (top, gone) = (function.attributes().local_bytes, Gone::default());
    let turns = function.attributes().optimise && function.attributes().convention == Convention::Kernel;
    let (pairs, shares) =
        (function.attributes().optimise && function.target().has(Feature::JoinsPairs), function.attributes().optimise);
    let mut allocator = Allocator {
        function,
        cfg,
        loops,
        live,
        branches,
        gone,
        made: Made::default(),
        top,
        coalesce: true,
        pairs,
        shares,
        turns,
        tries: TRIES,
        budget: None,
    };
    while allocator.round()? {}
    let (spilled, gone) = (allocator.top, allocator.gone);
    frame::finish(function, spilled);
    Ok(gone)
}

/// State of the rounds. Spill code adds no blocks, so the CFG and its loops stay valid.
struct Allocator<'a> {
    function: &'a mut Function,
    cfg: &'a Cfg,
    loops: &'a Loops,
    /// What lives at the ends of blocks, until the function changes.
    live: Option<&'a Liveness>,
    /// The blocks at whose end some lanes may go on to a call, and what is called.
    branches: &'a [(Block, Callee)],
    gone: Gone,
    made: Made,
    /// Offset of the first free byte of the frame.
    top: u32,
    coalesce: bool,
    /// Whether the words of 64-bit numbers are placed beside each other: until that costs a spill.
    pairs: bool,
    /// Whether a uniform register may be one with a copy of it that lives as long: until that costs
    /// a spill.
    shares: bool,
    /// Whether uniform registers take turns, until one is spilled. A device function's callers keep
    /// what it leaves alone.
    turns: bool,
    /// How many more rounds may spill what costs least where classes found no place, in the hope
    /// that they find one then.
    tries: u32,
    /// What they may still cost: in all as much as making room would have cost the first time.
    budget: Option<f64>,
}

impl Allocator<'_> {
    /// One round; returns true if another must follow.
    fn round(&mut self) -> Result<bool, String> {
        let mut classes = self.classes()?;
        let (function, made, gone, loops) = (&*self.function, &self.made, &self.gone, self.loops);
        let weights = OnceCell::new();
        let weights_of = || weights.get_or_init(|| Weights::new(function, gone, loops));
        let may_spill = |reg| may_spill(function, made, reg);
        let scale = |reg: VReg| {
            // A value with a place of its own need not be stored again.
            let stored = made.slot[reg].is_some() || made.held[reg].is_some();
            if stored { IN_FRAME } else { 1.0 }
        };
        let weigh = |classes: &Classes, choice: &mut Choice| choice.weigh(classes, weights_of, may_spill, scale);
        let mut choice = Choice::new(&classes, may_spill);
        for file in FILES {
            let closed = classes.barred.always[file as usize].iter().count() as u32;
            // Zones may allow fewer.
            let zones = file == File::R && !classes.barred.zones.is_empty();
            if zones || choice.peaks[file as usize] > 256 - closed {
                weigh(&classes, &mut choice);
                choice.relieve(&classes, file, 256 - closed);
            }
        }
        let chosen = |choice: &Choice| choice.columns.iter().any(|c| c.chosen);
        if !chosen(&choice) {
            let reluctant = reluctant(self.function);
            let mut assigner = Assigner::new(&mut classes, &mut choice, reluctant, self.turns, &weigh);
            let order = assigner.order();
            let stuck = assigner.run(&order);
            let stuck =
                if self.function.attributes().optimise { self.packed(&mut assigner, &order, stuck) } else { stuck };
            if (stuck.is_some() || spills(&assigner, &[File::UR])) && std::mem::take(&mut self.turns) {
                return Ok(true);
            }
            if (stuck.is_some() || spills_words(&assigner)) && std::mem::take(&mut self.pairs) {
                return Ok(true);
            }
            if (stuck.is_some() || spills(&assigner, &[File::UR])) && std::mem::take(&mut self.shares) {
                return Ok(true);
            }
            // Where nothing is scheduled, values last longer for a debugger.
            let spread = self.function.attributes().optimise || self.function.watched().is_some();
            if spread && stuck.is_none() && !chosen(assigner.choice) {
                spread::run(&mut assigner, &order, self.function);
                if self.function.attributes().optimise {
                    addresses::rotate(self.function, self.loops, &mut assigner, &order);
                }
            }
            let tight = std::mem::take(&mut assigner.tight);
            if let Some(class) = stuck.filter(|_| !chosen(&choice)) {
                if std::mem::take(&mut self.coalesce) {
                    return Ok(true);
                }
                return Err(self.refusal(&classes, class));
            }
            if self.function.attributes().optimise && self.tries > 0 && chosen(&choice) {
                let mut other = Choice::new(&classes, may_spill);
                weigh(&classes, &mut other);
                if let Some(left) = other.relieve_at(&classes, &tight, (&choice, self.budget)) {
                    self.budget = Some(left);
                    (choice, self.tries) = (other, self.tries - 1);
                }
            }
        }
        if !chosen(&choice) {
            self.settle(&classes);
            return Ok(false);
        }
        let weights = weights.into_inner().unwrap_or_else(|| Weights::new(self.function, &self.gone, self.loops));
        self.live = None;
        self.spill(&classes, &choice, &weights);
        Ok(true)
    }

    /// Computes the classes, with every tuple placed and copies coalesced.
    fn classes(&mut self) -> Result<Classes, String> {
        let mut barred = barred(self.function);
        loop {
            self.function.list_registers();
            barred.zones = zones::zones(self.function);
            let mut ranges = match self.live {
                Some(live) => Ranges::from(self.function, self.cfg, &self.gone, live),
                None => Ranges::new(self.function, self.cfg, &self.gone),
            };
            ranges.beside = ends(self.function, self.branches);
            let same = if self.shares { Same::new(self.function, &self.gone, &ranges) } else { Same::default() };
            let mut classes = Classes::new(self.function, &mut ranges, barred.clone(), same)
                .map_err(|e| format!("Function '{}': {e}", self.function.name()))?;
            let left = register_tuples::place(self.function, &mut classes, &self.gone, self.loops);
            if left.is_empty() {
                if self.coalesce {
                    classes.coalesce(self.function, &self.gone, self.loops);
                    if self.pairs {
                        word_pairs::place(self.function, &mut classes, self.loops);
                    }
                }
                return Ok(classes);
            }
            self.live = None;
            for reg in register_tuples::copy_out(self.function, &left) {
                self.made.short[reg] = true;
            }
        }
    }

    /// Improves an assignment: in fewer registers, or without spilling. Returns the class that
    /// still has no place.
    fn packed(&self, assigner: &mut Assigner, order: &[u32], stuck: Option<u32>) -> Option<u32> {
        // A device function would save what it packs into callee-saved registers.
        let packs = self.function.attributes().convention != Convention::Device || self.function.attributes().private;
        let spilled = assigner.choice.columns.iter().any(|c| c.chosen);
        if stuck.is_none() && !spilled {
            if packs {
                packing::pack(assigner, order);
            }
            return None;
        }
        let general = |id: &u32| assigner.classes.classes[*id as usize].file == File::R;
        if stuck.is_some_and(|id| !general(&id)) {
            return stuck;
        }
        let before: Vec<bool> = assigner.choice.columns.iter().map(|c| c.chosen).collect();
        let others = assigner.choice.columns.iter().any(|c| c.chosen && !general(&c.class));
        if !others && packing::fit(assigner, order) {
            assigner.choice.columns.iter_mut().for_each(|c| c.chosen = false);
            if packs {
                packing::pack(assigner, order);
            }
            return None;
        }
        assigner.choice.columns.iter_mut().zip(before).for_each(|(c, chosen)| c.chosen = chosen);
        stuck
    }

    /// Commits the assignment: sets the physical number of every register.
    fn settle(&mut self, classes: &Classes) {
        for class in &classes.classes {
            let Some(base) = class.base else { continue };
            for column in &class.columns {
                for member in column.members.iter() {
                    self.function[*member].phys = Some((base + column.slot) as u16);
                }
            }
        }
    }

    /// Rewrites the function for the columns chosen to be spilled.
    fn spill(&mut self, classes: &Classes, choice: &Choice, weights: &Weights) {
        let mut homes: SecondaryMap<VReg, Home> = table(self.function.regs().len());
        let (mut runs, mut waiting) = (Vec::new(), Vec::new());
        for (id, class) in classes.classes.iter().enumerate() {
            let numbers = choice.of_class(id as u32, class.columns.len());
            let mut previous = None;
            for (number, column) in numbers.zip(&class.columns).filter(|(number, _)| choice.columns[*number].chosen) {
                let stored = self.homes(class, column, &choice.columns[number], weights, &mut homes);
                if stored.is_empty() {
                    continue;
                }
                let at = add_to_run(&mut runs, class, column, previous == Some(column.slot - 1));
                previous = Some(column.slot);
                waiting.extend(stored.into_iter().map(|member| (member, at)));
            }
        }
        let first = spill_slots::assign(&runs, &mut self.top);
        for (member, (run, word)) in waiting {
            homes[member] = Home::Frame(first[run] + 4 * word);
        }
        self.let_go(&mut homes);
        Spiller::new(self.function, homes, &mut self.gone, &mut self.made).run();
    }

    /// Gives what is held in a register that is itself spilled another one.
    fn let_go(&mut self, homes: &mut SecondaryMap<VReg, Home>) {
        for reg in self.function.regs().keys().collect::<Vec<VReg>>() {
            if let Home::Held(from) = homes[reg]
                && (self.gone[from] || homes[from] != Home::None)
            {
                homes[reg] = Home::Register(self.function.new_reg(File::R));
            }
        }
    }

    /// Finds locations for the members of a column that need no new spill slot; returns the others.
    fn homes(
        &mut self,
        class: &bundles::Class,
        column: &bundles::Column,
        info: &pressure::Info,
        weights: &Weights,
        homes: &mut SecondaryMap<VReg, Home>,
    ) -> Vec<VReg> {
        let (mut shared, mut stored) = (None, Vec::new());
        for member in
            column.members.iter().copied().filter(|m| may_spill(self.function, &self.made, *m)).collect::<Vec<VReg>>()
        {
            self.made.split[member] = info.point.map(|point| point / 2);
            let again = match weights.definition[member] {
                Definition::One(inst) => recompute(self.function, inst, member).map(Home::Recompute),
                _ => None,
            };
            let held = self.made.held[member].map(Home::Held);
            match self.made.slot[member].map(Home::Slot).or(held).or(again) {
                Some(home) => homes[member] = home,
                None if class.file == File::R => stored.push(member),
                None => {
                    let file = if class.file == File::UP { File::UR } else { File::R };
                    homes[member] = Home::Register(*shared.get_or_insert_with(|| self.function.new_reg(file)));
                }
            }
        }
        stored
    }

    fn refusal(&self, classes: &Classes, class: u32) -> String {
        let class = &classes.classes[class as usize];
        let name = match class.file {
            File::R => "general",
            File::UR => "uniform",
            File::P | File::UP => "predicate",
            File::B | File::UB => "convergence barrier",
        };
        let limit = 256 - classes.barred.always[class.file as usize].iter().count();
        format!("Function '{}' needs more than {limit} {name} registers at one instruction", self.function.name())
    }
}

fn may_spill(function: &Function, made: &Made, reg: VReg) -> bool {
    let data = &function[reg];
    !made.short[reg] && data.fixed.is_none() && data.phys.is_none() && data.file != File::UB
}

/// Whether values of general or uniform registers, the files that have pairs, are to be spilled.
fn spills_words(assigner: &Assigner) -> bool {
    spills(assigner, &[File::R, File::UR])
}

/// Whether values of some register files are to be spilled.
fn spills(assigner: &Assigner, files: &[File]) -> bool {
    let file = |class: u32| assigner.classes.classes[class as usize].file;
    assigner.choice.columns.iter().any(|column| column.chosen && files.contains(&file(column.class)))
}

/// Adds a column to the last run if they are neighbours, else starts a new run. Returns the run and
/// the column's word in it.
fn add_to_run(runs: &mut Vec<Run>, class: &bundles::Class, column: &bundles::Column, next: bool) -> (usize, u32) {
    let first = column.ranges.first().map_or(0, |r| r.0);
    let last = column.ranges.last().map_or(u32::MAX, |r| r.1);
    if let Some(run) = runs.last_mut().filter(|_| next) {
        run.span = (run.span.0.min(first), run.span.1.max(last));
        run.words += 1;
        return (runs.len() - 1, runs[runs.len() - 1].words - 1);
    }
    let word = (class.residue + column.slot).rem_euclid(class.modulus.min(4)) as u32;
    runs.push(Run { span: (first, last), words: 1, place: (class.columns.len() > 1).then_some(word) });
    (runs.len() - 1, 0)
}

/// The points between the last instruction of each of these blocks and what follows.
fn ends(function: &Function, branches: &[(Block, Callee)]) -> Vec<(u32, Callee)> {
    if branches.is_empty() {
        return Vec::new();
    }
    let mut end = table_of(function.block_limit(), 0);
    let mut count = 0;
    for block in function.layout() {
        count += function[*block].len() as u32;
        end[*block] = (2 * count).saturating_sub(1);
    }
    let mut ends: Vec<(u32, Callee)> = branches.iter().map(|(block, callee)| (end[*block], *callee)).collect();
    ends.sort_unstable();
    ends
}

/// Registers that must not be assigned: those beyond the end of the file, and reserved ones.
fn barred(function: &Function) -> Barred {
    let mut barred = Barred { always: [Mask::default(); 6], zones: Vec::new() };
    for file in FILES {
        let all = Mask::below(256);
        barred.always[file as usize] = all.minus(Mask::below(limit(function, file)));
        // The limit on general registers is that of the slow path.
        if function.attributes().convention == Convention::SlowPath && file != File::R {
            let own = all.minus(bundles::changed(Callee::SlowPath(0))[file as usize]);
            barred.always[file as usize] = barred.always[file as usize].or(own);
        }
    }
    barred.always[File::R as usize].insert(i32::from(STACK_POINTER));
    let first = function.target().info().map_or(0, |info| info.ur_first as i32);
    (0..first).for_each(|n| barred.always[File::UR as usize].insert(n));
    for data in function.regs().values() {
        if let Some(phys) = data.phys {
            barred.always[data.file as usize].insert(i32::from(phys));
        }
    }
    barred
}

/// The registers of each file that calls of device functions may change.
static CHANGED: LazyLock<[Mask; 6]> = LazyLock::new(|| bundles::changed(Callee::Device));

/// Number of registers of a file that the function may use.
fn limit(function: &Function, file: File) -> i32 {
    let info = function.target().info();
    match file {
        File::R => {
            let most = info.map_or(0, |g| g.reg_limit);
            function.attributes().max_registers.map_or(most, |m| m.min(most)).saturating_sub(EXTRA_REGISTERS) as i32
        }
        File::UR => {
            let all = info.map_or(0, |g| g.ur_count as i32);
            // A device function would have to save the callee-saved ones, and has no way to.
            let kept = first_kept(file.name()).filter(|_| function.attributes().convention == Convention::Device);
            kept.map_or(all, |first| all.min(i32::from(first)))
        }
        File::P | File::UP => 7,
        // A device function would have to save the barriers that calls preserve. It does not,
        // because lanes of one region may call it one after the other: the later ones would save,
        // and later restore, what the earlier ones' call made of the barrier.
        File::B | File::UB if function.attributes().convention == Convention::Device => 6,
        File::B | File::UB => 16,
    }
}

/// Registers whose use costs a store and a load: the callee-saved ones, in a device function.
fn reluctant(function: &Function) -> Mask {
    if function.attributes().convention == Convention::Device && !function.attributes().private {
        Mask::below(256).minus(CHANGED[File::R as usize])
    } else {
        Mask::default()
    }
}

/// Whether calls of device functions preserve a register.
pub fn is_kept(file: File, number: u16) -> bool {
    !CHANGED[file as usize].contains(i32::from(number))
}

/// Numbers of the general registers that instructions name.
pub fn general_registers(function: &Function) -> crate::sorted::SortedSet<u16> {
    let mut used = crate::sorted::SortedSet::new();
    let mut note = |reg: crate::ori::VReg| {
        if let Some(n) = function[reg].phys.filter(|_| function[reg].file == File::R) {
            used.insert(n);
        }
    };
    for inst in function.layout().iter().flat_map(|b| &function[*b]) {
        function.for_each_def(*inst, &mut note);
        function.for_each_use(*inst, &mut note);
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sorted::SortedSet;
    use crate::tables::targets::TARGETS;

    /// Two general registers are for the count in the cubin.
    #[test]
    fn files_have_their_sizes() {
        let mut uniform = SortedSet::new();
        for (target, info) in TARGETS.iter().filter_map(|target| Some((target, target.info()?))) {
            let mut function = Function::new("k", target);
            let sizes = |function: &Function| FILES.map(|file| limit(function, file));
            assert_eq!(sizes(&function), [253, info.ur_count as i32, 7, 7, 16, 16], "{}", target.name);
            assert_eq!(info.ur_first, 4);
            uniform.insert(info.ur_count);
            function.attributes_mut().convention = Convention::Device;
            assert_eq!(sizes(&function), [253, 36, 7, 7, 6, 6], "{}", target.name);
        }
        assert_eq!(uniform, SortedSet::from([63, 80]));
    }
}
