//! Counts the registers that live at once while a block is read from its end to its beginning.
//!
//! A quad that one instruction writes (a load of 128 bits, a product's result) may count as a whole
//! from the first of its registers that lives to the last: what is free within it can hold no other
//! quad.

use crate::ori::liveness::Liveness;
use crate::ori::{Block, File, Function, InstId, VReg, table};
use crate::tables::ori::Direction;
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

/// Predicates that may live at once.
const PLACES: i32 = 7;
/// Registers of what counts as a whole.
const QUAD: std::ops::RangeInclusive<usize> = 3..=4;

/// Most registers of each kind that live at once in a block, or by how many they change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peaks {
    pub general: i32,
    pub uniform: i32,
    pub predicates: i32,
    /// General registers with what is lost between them, and with predicates that find no place.
    pub needs: i32,
    /// General registers that live at the end, and at the beginning.
    pub last: i32,
    pub first: i32,
    /// General registers above those that there are, summed over the instructions: what spills
    /// take.
    pub over: i64,
}

/// What an order costs: registers, and where there are too few of them what spills take.
pub type Cost = (i32, i64);

/// A cost to be below, where there are so many general registers.
#[derive(Clone, Copy)]
pub struct Limit {
    pub cost: Cost,
    pub all: i32,
}

impl Peaks {
    /// Predicates that find no place, which live in general registers.
    pub fn unplaced(&self) -> i32 {
        (self.predicates - PLACES).max(0)
    }

    /// What an order with these peaks costs where there are so many general registers.
    pub fn cost(&self, all: i32) -> Cost {
        if self.needs > all { (all + 1, self.over) } else { (self.needs, 0) }
    }

    /// Adds to the number of a file.
    #[inline]
    pub fn count(&mut self, file: File, by: i32) {
        match file {
            File::R => self.general += by,
            File::UR => self.uniform += by,
            File::P | File::UP => self.predicates += by,
            File::B | File::UB => {}
        }
    }
}

/// Tables of the function that all blocks use in turn, so that a block costs its own length.
pub struct Live {
    /// The last sweep in which a register lived, if that was not its end.
    lives: SecondaryMap<VReg, u32>,
    sweep: u32,
    /// The number of the quad that a register belongs to; 0 is none.
    quad: SecondaryMap<VReg, u32>,
    /// Registers of each quad, and those of them that live.
    quads: Vec<(i32, i32)>,
    limit: usize,
    /// General registers that there are.
    pub room: i32,
}

impl Live {
    /// Nothing lives.
    pub fn new(function: &Function, room: i32) -> Live {
        let limit = function.regs().len();
        let mut live = Live { lives: table(limit), sweep: 0, quad: table(limit), quads: vec![(0, 0)], limit, room };
        for inst in function.layout().iter().flat_map(|block| &function[*block]) {
            for (at, operand) in function.args(*inst).iter().enumerate() {
                let Some(regs) = operand.as_vector().map(|vector| function.vector_regs(vector)) else { continue };
                if function.direction(*inst, at) != Direction::Def {
                    continue;
                }
                let quad = QUAD.contains(&regs.len()) && regs.iter().all(|reg| live.is_single(function, *reg));
                if quad {
                    regs.iter().for_each(|reg| live.quad[*reg] = live.quads.len() as u32);
                    live.quads.push((regs.len() as i32, 0));
                }
            }
        }
        live
    }

    /// Groups of registers that change together.
    pub fn groups(&self) -> usize {
        self.limit + self.quads.len()
    }

    /// The group of a register: its quad, or itself.
    pub fn group(&self, reg: VReg) -> usize {
        match self.quad[reg] {
            0 => reg.index(),
            quad => self.limit + quad as usize,
        }
    }

    fn is_single(&self, function: &Function, reg: VReg) -> bool {
        function[reg].file == File::R && self.quad[reg] == 0
    }
}

/// The live registers at a point of a block, which moves from its end to its beginning.
pub struct Sweep<'a> {
    pub function: &'a Function,
    pub live: &'a mut Live,
    /// Whether quads count as a whole.
    quads: bool,
    pub now: Peaks,
    most: Peaks,
}

impl<'a> Sweep<'a> {
    /// The end of a block.
    pub fn start(
        function: &'a Function,
        block: Block,
        liveness: &Liveness,
        live: &'a mut Live,
        quads: bool,
    ) -> Sweep<'a> {
        live.sweep += 1;
        if quads {
            live.quads.iter_mut().for_each(|quad| quad.1 = 0);
        }
        let (now, most) = (Peaks::default(), Peaks::default());
        let mut sweep = Sweep { function, live, quads, now, most };
        for reg in &liveness.live[block] {
            sweep.begin(*reg);
        }
        sweep.note();
        sweep.most.last = sweep.now.general;
        sweep
    }

    /// Goes through a whole block.
    pub fn order(mut self, insts: &[InstId]) -> Peaks {
        insts.iter().rev().for_each(|inst| self.pass(*inst));
        self.finish()
    }

    /// The peaks of a block whose beginning it is at.
    pub fn finish(self) -> Peaks {
        Peaks { first: self.now.general, ..self.most }
    }

    /// Whether what the orders that have been read so far take is less than the limit.
    pub fn is_below(&self, limit: &Limit) -> bool {
        let most = &self.most;
        Peaks { needs: most.general + most.unplaced(), ..*most }.cost(limit.all) < limit.cost
    }

    /// Whether quads count as a whole.
    pub fn counts_quads(&self) -> bool {
        self.quads
    }

    /// Whether a register lives.
    pub fn contains(&self, reg: VReg) -> bool {
        self.live.lives[reg] == self.live.sweep
    }

    /// Goes over one instruction.
    pub fn pass(&mut self, inst: InstId) {
        let function = self.function;
        if function[inst].guard.is_null() {
            function.for_each_def(inst, |reg| {
                self.end(reg);
            });
        }
        function.for_each_use(inst, |reg| {
            self.begin(reg);
        });
        self.step();
    }

    /// Counts what lives before an instruction.
    pub fn step(&mut self) {
        self.note();
        self.most.over += i64::from((self.now.general - self.live.room).max(0));
    }

    /// A register lives; whether it did not before.
    pub fn begin(&mut self, reg: VReg) -> bool {
        let new = !self.contains(reg);
        if new {
            self.live.lives[reg] = self.live.sweep;
            self.count(reg, 1);
        }
        new
    }

    /// A register lives no more; whether it did.
    pub fn end(&mut self, reg: VReg) -> bool {
        let lived = self.contains(reg);
        if lived {
            self.live.lives[reg] = 0;
            self.count(reg, -1);
        }
        lived
    }

    /// Counts a register that began or ended: a quad with its first one, or its last.
    fn count(&mut self, reg: VReg, by: i32) {
        let quad = if self.quads { self.live.quad[reg] } else { 0 };
        if quad == 0 {
            return self.now.count(self.function[reg].file, by);
        }
        let (size, living) = &mut self.live.quads[quad as usize];
        let before = *living > 0;
        *living += by;
        self.now.general += *size * (i32::from(*living > 0) - i32::from(before));
    }

    /// Notes the peaks.
    pub fn note(&mut self) {
        self.most.general = self.most.general.max(self.now.general);
        self.most.uniform = self.most.uniform.max(self.now.uniform);
        self.most.predicates = self.most.predicates.max(self.now.predicates);
    }

    /// By how many registers the pressure would change if these began, by 1, or ended, by -1.
    pub fn sum(&self, registers: impl Iterator<Item = (VReg, i32)>) -> Peaks {
        let mut change = self.change();
        registers.for_each(|(reg, by)| change.note(self, reg, self.function[reg].file, by));
        change.of(self)
    }

    /// A sum of no registers.
    pub fn change(&self) -> Change {
        Change::default()
    }
}

/// A sum of registers that begin and end.
#[derive(Default)]
pub struct Change {
    peaks: Peaks,
    /// Quads, and by how many of their registers they change.
    quads: SmallVec<[(u32, i32); 4]>,
}

impl Change {
    /// Adds a register of a file that begins, or ends.
    #[inline]
    pub fn note(&mut self, sweep: &Sweep, reg: VReg, file: File, by: i32) {
        match if sweep.quads { sweep.live.quad[reg] } else { 0 } {
            0 => self.peaks.count(file, by),
            quad => self.note_quad(quad, by),
        }
    }

    fn note_quad(&mut self, quad: u32, by: i32) {
        match self.quads.iter_mut().find(|of| of.0 == quad) {
            Some(of) => of.1 += by,
            None => self.quads.push((quad, by)),
        }
    }

    /// By how many registers the pressure changes.
    #[inline]
    pub fn of(mut self, sweep: &Sweep) -> Peaks {
        for (quad, by) in self.quads {
            let (size, living) = sweep.live.quads[quad as usize];
            self.peaks.general += size * (i32::from(living + by > 0) - i32::from(living > 0));
        }
        self.peaks
    }
}
