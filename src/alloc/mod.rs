//! Phase AllocateRegisters: physical numbers for all virtual registers, with spilling.
//!
//! Input: a function out of SSA. Output: every register that an instruction names has a physical number; COPY, UNDEF and ENTRY
//! are gone; the frame is laid out and the stack pointer set. Steps, in rounds: `ranges` says where each register is live; `vectors` gives
//! every register vector a place in a class, or copies where a register is asked for in two places; `classes` coalesces copies;
//! `pressure` and `assign` give each class the lowest free place or choose what goes to memory; `spill` rewrites the
//! function for what was chosen, and the next round begins. `frame` ends the work. `check` follows it all and trusts none of it.
//!
//! What is guaranteed:
//!  * two registers that are live at once never share a physical register; a vector gets adjacent registers, the first at a
//!    multiple of its length (rounded up to a power of two, at most [`vectors::WIDEST`]);
//!  * `RegData::phys` is reserved in the whole function, and given to nothing else;
//!  * `RegData::fixed` is kept over the register's own live range; values get in and out by the copies that lowering wrote,
//!    which vanish where nothing stands against it;
//!  * over an instruction with the property `clobbers` nothing lives in a register that `registers.ron` does not list;
//!  * no general register above the limit: the target's, or `Function::max_registers`, less the two that the count adds;
//!  * a device function ([`Convention::Device`](crate::ori::Convention)) saves the listed registers that it uses behind ENTRY and restores them before each RET;
//!  * a function is refused only if one instruction alone names more registers than there are.
//!
//! Why it ends: a round that does not finish moves at least one register out of the set of those that may be spilled. Uniform predicates are spilled to uniform registers; predicates, uniform
//! registers and barriers to general registers (all of them new ones that may be spilled), general registers to memory. A register that spill
//! code makes lives around one instruction and is never spilled, or serves several reads in one block and may be spilled again, without
//! another store; those it is then replaced by serve reads close together, and the next ones single instructions. So (spillable uniform predicates, spillable of the other
//! files, spillable of the general file by generation) falls lexicographically.
//!
//! How lowering writes a call:
//! ```text
//! COPY d=r10 a=r1                      r10 = Function::new_fixed(File::R, 4), fresh for every call
//! COPY d=r11 a=r2                      r11 = new_fixed(File::R, 5)
//! CALL target=... in(r10 r11) out(r12) Function::set_extras(call, uses, defs); r12 = new_fixed(File::R, 4)
//! COPY d=r3 a=r12
//! ```
//! A vector of fixed registers needs the first one fixed only. A device function begins with `ENTRY out(r4 r5 …)` of fixed registers
//! and copies them away; RET reads its results as extras. `Function::stack_register` is R1 (no instruction sets it before
//! this phase); offsets below `local_bytes` are lowering's; incoming stack arguments are addressed from R1 + 0 and listed in
//! `Function::above_frame`. Bytes of the finished frame: `Function::frame_bytes`.

pub mod assign;
pub mod check;
pub mod classes;
pub mod finish;
pub mod frame;
pub mod occupied;
pub mod pressure;
pub mod ranges;
pub mod recompute;
pub mod slots;
pub mod spill;
pub mod vectors;
pub mod weights;

use crate::analysis::{Loops, PassCx};
use crate::ori::cfg::Cfg;
use crate::ori::{Convention, File, Function, STACK_POINTER, VReg};
use assign::Assigner;
use classes::{Barred, Classes};
use cranelift_entity::SecondaryMap;
use occupied::Mask;
use pressure::Choice;
use ranges::{Gone, Ranges};
use recompute::recompute;
use slots::Run;
use spill::{Home, Made, Spiller};
use weights::{Definition, Weights};

/// Registers that the count in a cubin states beyond the highest one used. Source: measured on 200 cubins.
pub const EXTRA_REGISTERS: u32 = 2;

/// What it costs to keep a value in memory that is there already, against one that must be stored.
const IN_FRAME: f64 = 0.5;

/// Files in the order of their numbers.
const FILES: [File; 6] = [File::R, File::UR, File::P, File::UP, File::B, File::UB];

/// Allocates. The error says which file ran out of registers, or which fixed register cannot be.
pub fn run(cx: &mut PassCx) -> Result<(), String> {
    let (cfg, loops) = (cx.cfg(), cx.loops());
    let function = &mut *cx.function;
    let before = cfg!(debug_assertions).then(|| function.clone());
    let first_new = function.insts.len() as u32;
    let gone = place(function, &cfg, &loops)?;
    if let Some(before) = before {
        let wrong = check::check(&before, function, &gone);
        if !wrong.is_empty() {
            return Err(format!("broken invariant: {}", wrong.join("; ")));
        }
    }
    finish::run(function, &gone, first_new);
    Ok(())
}

/// Allocates, but leaves what the checker needs to see: copies, and markers that name the registers returned.
pub fn place(function: &mut Function, cfg: &Cfg, loops: &Loops) -> Result<Gone, String> {
    let top = function.local_bytes;
    let mut allocator =
        Allocator { function, cfg, loops, gone: Gone::new(), made: Made::default(), top, coalesce: true };
    while allocator.round()? {}
    let (spilled, gone) = (allocator.top, allocator.gone);
    frame::finish(function, spilled);
    Ok(gone)
}

/// The state of the rounds. Spill code adds no block, so that the graph and its loops stay what they are.
struct Allocator<'a> {
    function: &'a mut Function,
    cfg: &'a Cfg,
    loops: &'a Loops,
    gone: Gone,
    made: Made,
    /// First byte of the frame that is free.
    top: u32,
    coalesce: bool,
}

impl Allocator<'_> {
    /// One round; true if another must follow.
    fn round(&mut self) -> Result<bool, String> {
        let mut classes = self.classes()?;
        let weights = Weights::new(self.function, &self.gone, self.loops);
        let mut choice = Choice::new(
            &classes,
            &weights,
            |reg| self.may_spill(reg),
            |reg| {
                // What is in the frame already need not be stored.
                if self.made.slot[reg].is_some() { IN_FRAME } else { 1.0 }
            },
        );
        for file in FILES {
            let closed = classes.barred.always[file as usize].iter().count() as u32;
            choice.relieve(&classes, file, 256 - closed);
        }
        let chosen = |choice: &Choice| choice.columns.iter().any(|c| c.chosen);
        if !chosen(&choice) {
            let reluctant = reluctant(self.function);
            let mut assigner = Assigner::new(&mut classes, &mut choice, reluctant);
            let order = assigner.order();
            let stuck = assigner.run();
            if self.function.optimise && stuck.is_none() && !chosen(assigner.choice) {
                assigner.spread(&order);
            }
            if let Some(class) = stuck.filter(|_| !chosen(&choice)) {
                if std::mem::take(&mut self.coalesce) {
                    return Ok(true);
                }
                return Err(self.refusal(&classes, class));
            }
        }
        if !chosen(&choice) {
            self.settle(&classes);
            return Ok(false);
        }
        self.spill(&classes, &choice, &weights);
        Ok(true)
    }

    /// Classes with every vector in place, and copies coalesced.
    fn classes(&mut self) -> Result<Classes, String> {
        let barred = barred(self.function);
        loop {
            let mut ranges = Ranges::new(self.function, self.cfg, &self.gone);
            let mut classes = Classes::new(self.function, &mut ranges, barred.clone())
                .map_err(|e| format!("Function '{}': {e}", self.function.name))?;
            let left = vectors::place(self.function, &mut classes, &self.gone, self.loops);
            if left.is_empty() {
                if self.coalesce {
                    classes.coalesce(self.function, &self.gone, self.loops);
                }
                return Ok(classes);
            }
            for reg in vectors::copy_out(self.function, &left) {
                self.made.short[reg] = true;
            }
        }
    }

    fn may_spill(&self, reg: VReg) -> bool {
        let data = &self.function.regs[reg];
        !self.made.short[reg] && data.fixed.is_none() && data.phys.is_none() && data.file != File::UB
    }

    /// Gives every register its number.
    fn settle(&mut self, classes: &Classes) {
        for class in &classes.classes {
            let Some(base) = class.base else { continue };
            for column in &class.columns {
                for member in &column.members {
                    self.function.regs[*member].phys = Some((base + column.slot) as u16);
                }
            }
        }
    }

    /// Rewrites the function for the chosen columns.
    fn spill(&mut self, classes: &Classes, choice: &Choice, weights: &Weights) {
        let mut homes: SecondaryMap<VReg, Home> = SecondaryMap::new();
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
        let first = slots::assign(&runs, &mut self.top);
        for (member, (run, word)) in waiting {
            homes[member] = Home::Frame(first[run] + 4 * word);
        }
        Spiller::new(self.function, homes, &mut self.gone, &mut self.made).run();
    }

    /// Homes of the members of a column that need no new word of the frame; the others are returned.
    fn homes(
        &mut self,
        class: &classes::Class,
        column: &classes::Column,
        info: &pressure::Info,
        weights: &Weights,
        homes: &mut SecondaryMap<VReg, Home>,
    ) -> Vec<VReg> {
        let (mut shared, mut stored) = (None, Vec::new());
        for member in column.members.iter().copied().filter(|m| self.may_spill(*m)).collect::<Vec<VReg>>() {
            self.made.split[member] = info.point.map(|point| point / 2);
            let again = match weights.definition[member] {
                Definition::One(inst) => recompute(self.function, inst, member).map(Home::Recompute),
                _ => None,
            };
            match self.made.slot[member].map(Home::Slot).or(again) {
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
        format!("Function '{}' needs more than {limit} {name} registers at one instruction", self.function.name)
    }
}

/// Adds a column to the runs, behind the last one where it is its neighbour. The run, and the column's place in it.
fn add_to_run(runs: &mut Vec<Run>, class: &classes::Class, column: &classes::Column, next: bool) -> (usize, u32) {
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

/// Numbers that may not be given out: those behind the file's end, and reserved ones; and across calls those that calls destroy.
fn barred(function: &Function) -> Barred {
    let mut barred = Barred { always: [Mask::default(); 6], across_calls: [Mask::default(); 6] };
    for file in FILES {
        let all = Mask::below(256);
        barred.always[file as usize] = all.minus(Mask::below(limit(function, file)));
        for n in all.iter().filter(|n| !is_kept(file, *n as u16)) {
            barred.across_calls[file as usize].insert(n);
        }
    }
    barred.always[File::R as usize].insert(i32::from(STACK_POINTER));
    for data in function.regs.values() {
        if let Some(phys) = data.phys {
            barred.always[data.file as usize].insert(i32::from(phys));
        }
    }
    barred
}

/// Number of registers of a file that the function may use.
fn limit(function: &Function, file: File) -> i32 {
    let info = function.target.info();
    match file {
        File::R => {
            let most = info.map_or(0, |g| g.reg_limit);
            function.max_registers.map_or(most, |m| m.min(most)).saturating_sub(EXTRA_REGISTERS) as i32
        }
        File::UR => info.map_or(0, |g| g.ur_count as i32),
        File::P | File::UP => 7,
        // A device function would have to save those that calls leave alone, and there is no way but through registers.
        File::B | File::UB if function.convention == Convention::Device => 6,
        File::B | File::UB => 16,
    }
}

/// Registers that cost a store and a load when they are used: those that a device function has to save.
fn reluctant(function: &Function) -> Mask {
    let mut mask = Mask::default();
    if function.convention == Convention::Device {
        Mask::below(256).iter().filter(|n| is_kept(File::R, *n as u16)).for_each(|n| mask.insert(n));
    }
    mask
}

/// Whether a call leaves a register as it is.
pub fn is_kept(file: File, number: u16) -> bool {
    crate::tables::registers::kept_across_calls(file.name(), number)
}

/// Numbers of the general registers that instructions name.
pub fn general_registers(function: &Function) -> std::collections::BTreeSet<u16> {
    let mut used = std::collections::BTreeSet::new();
    let mut note = |reg: crate::ori::VReg| {
        if let Some(n) = function.regs[reg].phys.filter(|_| function.regs[reg].file == File::R) {
            used.insert(n);
        }
    };
    for inst in function.layout.iter().flat_map(|b| &function.blocks[*b]) {
        function.for_each_def(*inst, &mut note);
        function.for_each_use(*inst, &mut note);
    }
    used
}
