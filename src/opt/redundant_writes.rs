//! Redundant writes: an instruction is removed if its registers hold its results already.
//!
//! Runs after allocation, whose spill code brings a value back before each reader. An instruction
//! goes if an earlier one in its block, or in the blocks before it that lead nowhere else into it,
//! is the same pure operation on the same registers with the same results, and nothing has written
//! any of them since. A word that is moved to the uniform file, which may be where lanes are apart,
//! is there already only within a block, where the same lanes have moved it and no others come in
//! between, up to where more of them may come together.

use crate::analysis::PassCx;
use crate::analysis::def_use::is_pure;
use crate::ori::{Block, File, Function, InstId, Kind, Operand, VReg};
use crate::tables::{Op, Prop};
use smallvec::SmallVec;

/// Registers of a file at most.
const FILE: usize = 256;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let function = &mut *cx.function;
    let mut held = Held::new();
    let mut before: Option<Block> = None;
    for block in function.layout().to_vec() {
        // What the only block before this one leaves is here too.
        if before.is_none() || cfg.preds[block].as_slice() != before.as_slice() {
            held.forget();
        }
        held.forget_moved();
        let insts = std::mem::take(&mut function[block]);
        function[block] = insts.into_iter().filter(|inst| held.pass(function, *inst)).collect();
        before = Some(block);
    }
}

/// An instruction and the versions of the registers that it read.
type Writer = (InstId, SmallVec<[(usize, u32); 4]>);

/// What each physical register holds.
struct Held {
    /// How often each register was written.
    version: Vec<u32>,
    writer: Vec<Option<Writer>>,
    /// Registers that have a writer.
    written: Vec<usize>,
    /// Uniform registers that a word was moved to.
    moved: Vec<usize>,
}

impl Held {
    fn new() -> Held {
        let count = FILE * (File::UB as usize + 1);
        Held { version: vec![0; count], writer: vec![None; count], written: Vec::new(), moved: Vec::new() }
    }

    /// Nothing is known.
    fn forget(&mut self) {
        self.written.drain(..).for_each(|place| self.writer[place] = None);
    }

    /// Nothing is known of what lanes moved to the uniform file.
    fn forget_moved(&mut self) {
        self.moved.drain(..).for_each(|place| self.writer[place] = None);
    }

    /// Goes over an instruction; whether it stays.
    fn pass(&mut self, function: &Function, inst: InstId) -> bool {
        let data = &function[inst];
        if data.op.has(Prop::Clobbers) || function.callee(inst).is_some() {
            self.forget();
            return true;
        }
        let mut reads: SmallVec<[(usize, u32); 4]> = SmallVec::new();
        let mut writes: SmallVec<[usize; 4]> = SmallVec::new();
        let mut placed = true;
        function.for_each_use(inst, |reg| match place(function, reg) {
            Some(at) => reads.push((at, self.version[at])),
            None => placed = false,
        });
        function.for_each_def(inst, |reg| match place(function, reg) {
            Some(at) => writes.push(at),
            None => placed = false,
        });
        if data.op.has(Prop::Convergent) && !data.op.has(Prop::Droppable) {
            self.forget_moved();
        }
        // Computed are uniform registers only where all lanes are together.
        let moves = matches!(data.op, Op::UMOV | Op::R2UR) && data.guard.is_null();
        let pure = placed && (is_pure(function, inst) || moves) && !writes.is_empty();
        if pure && self.holds(function, inst, &reads, &writes) {
            return false;
        }
        for at in writes {
            self.version[at] += 1;
            self.writer[at] = pure.then(|| (inst, reads.clone()));
            self.written.push(at);
            self.moved.extend(moves.then_some(at));
        }
        true
    }

    /// Whether the registers hold what an instruction would write.
    fn holds(&self, function: &Function, inst: InstId, reads: &[(usize, u32)], writes: &[usize]) -> bool {
        writes.iter().all(|at| {
            let Some((writer, read)) = &self.writer[*at] else { return false };
            read.as_slice() == reads && is_same(function, *writer, inst)
        })
    }
}

/// The place of a register's physical one in the tables.
fn place(function: &Function, reg: VReg) -> Option<usize> {
    let data = &function[reg];
    data.phys.map(|number| data.file as usize * FILE + usize::from(number))
}

/// Whether two instructions are the same operation with the same physical registers.
fn is_same(function: &Function, a: InstId, b: InstId) -> bool {
    let (x, y) = (&function[a], &function[b]);
    let (of_a, of_b) = (function.args(a), function.args(b));
    let same = |(a, b): (&Operand, &Operand)| is_same_operand(function, *a, *b);
    x.op == y.op && x.mods == y.mods && of_a.len() == of_b.len() && of_a.iter().zip(of_b).all(same)
}

fn is_same_operand(function: &Function, a: Operand, b: Operand) -> bool {
    let same = |x: VReg, y: VReg| place(function, x).is_some() && place(function, x) == place(function, y);
    match (a.kind(), b.kind()) {
        (Kind::Reg(x), Kind::Reg(y)) => same(x, y) && a == b.with_reg(x),
        (Kind::Vector(x), Kind::Vector(y)) => {
            let (of_x, of_y) = (function.vector_regs(x), function.vector_regs(y));
            let all = of_x.len() == of_y.len() && of_x.iter().zip(of_y).all(|(x, y)| same(*x, *y));
            all && a == b.with_vector(x)
        }
        _ => a == b,
    }
}
