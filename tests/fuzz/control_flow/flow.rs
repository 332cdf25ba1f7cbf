//! Random programs of pure control flow: branches between arbitrary blocks, calls, and early exits.
//!
//! From a seed, or a shape with its size, it makes a program, its PTX, and the expected results,
//! which it computes by running the program itself. Every thread terminates: each block takes one
//! unit from a budget, and a call gets a quarter of what remains. The data of a thread decide its
//! path, so the threads of a warp diverge again and again. Some blocks set a state to a number, and
//! some branches test it, or test nothing: what is known of these closes paths, also into loops
//! with several entries.

use super::random::Random;
use std::fmt::Write;

/// Threads of the launch.
pub const THREADS: u32 = 256;

/// How a thread leaves in the middle of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    Return,
    Exit,
    /// Never taken: the condition is always false.
    Trap,
}

impl Leave {
    /// Four bits of the thread's data for which it leaves.
    fn bits(self) -> u32 {
        if self == Leave::Trap { 16 } else { 0 }
    }
}

/// A condition on some bits of a thread's data, or of its state: shift, mask, value.
#[derive(Clone, Copy)]
pub struct Test {
    of_state: bool,
    shift: u32,
    mask: u32,
    value: u32,
}

impl Test {
    fn holds(self, x: u32, state: u32) -> bool {
        (if self.of_state { state } else { x }) >> self.shift & self.mask == self.value
    }

    fn of(random: &mut Random) -> Test {
        match random.below(10) {
            // Always or never.
            0 => Test { of_state: false, shift: 0, mask: 0, value: random.below(2) as u32 },
            1 | 2 => Test { of_state: true, shift: 0, mask: 3, value: random.below(4) as u32 },
            _ => Test::of_data(random),
        }
    }

    fn of_data(random: &mut Random) -> Test {
        let mask = [1, 1, 3, 3, 7, 15][random.below(6)];
        let (shift, value) = (random.below(28) as u32, random.below(mask as usize + 1) as u32);
        Test { of_state: false, shift, mask, value }
    }
}

/// A block: a step of the thread's data, then a call, an exit, branches, and a jump.
#[derive(Clone, Default)]
pub struct Block {
    factor: u32,
    summand: u32,
    shift: u32,
    state: Option<u32>,
    call: Option<usize>,
    leave: Option<(Leave, u32)>,
    branches: Vec<(Test, usize)>,
    jump: Option<usize>,
}

impl Block {
    fn of(random: &mut Random) -> Block {
        let mut word = || random.below(1 << 32) as u32;
        let (factor, summand) = (word() | 1, word());
        Block { factor, summand, shift: 5 + random.below(15) as u32, ..Block::default() }
    }
}

/// A program: the bodies of the entry and of the functions that it calls. A branch past the last
/// block goes to the end.
pub struct Program {
    bodies: Vec<Vec<Block>>,
    budget: i32,
    seed: u32,
}

impl Program {
    /// Blocks with arbitrary branches; some blocks are the target of many.
    pub fn random(seed: u64) -> Program {
        let random = &mut Random::new(seed);
        let functions = [0, 0, 1, 2][random.below(4)];
        let bodies = (0..=functions).map(|body| anywhere(random, body, functions)).collect();
        Program { bodies, budget: [10, 30, 60][random.below(3)], seed: seed as u32 }
    }

    /// A loop with many branches to its last block, which repeats the loop or leaves it.
    pub fn ladder(rungs: usize, called: bool, leave: Option<Leave>) -> Program {
        let random = &mut Random::new(rungs as u64);
        let mut blocks: Vec<Block> = (0..=rungs).map(|_| Block::of(random)).collect();
        for block in &mut blocks[..rungs] {
            let test = Test { of_state: false, shift: 3 + random.below(20) as u32, mask: 7, value: 1 };
            block.branches.push((test, rungs));
        }
        blocks[rungs - 1].jump = Some(rungs + 1);
        blocks[rungs].branches.push((Test { of_state: false, shift: 4, mask: 3, value: 2 }, rungs + 1));
        blocks[rungs].leave = leave.map(|leave| (leave, 7));
        blocks[rungs].jump = Some(0);
        Program::around(random, blocks, called, 150)
    }

    /// Nested loops that lanes leave from the inside to any enclosing loop.
    pub fn nest(depth: usize, called: bool) -> Program {
        let random = &mut Random::new(depth as u64);
        let mut blocks: Vec<Block> = (0..2 * depth).map(|_| Block::of(random)).collect();
        for inner in 0..depth {
            // The loop head may leave any enclosing loop; the loop end repeats it or goes to the
            // end of the next one.
            let (out, test) = (depth + random.below(depth), Test::of_data(random));
            blocks[inner].branches.push((test, out + 1));
            let round = Test { of_state: false, shift: random.below(28) as u32, mask: 3, value: 1 };
            blocks[depth + inner].branches.push((round, depth - 1 - inner));
        }
        Program::around(random, blocks, called, 600)
    }

    /// The program with these blocks in its entry, or in a function that the entry calls.
    fn around(random: &mut Random, blocks: Vec<Block>, called: bool, budget: i32) -> Program {
        if !called {
            return Program { bodies: vec![blocks], budget, seed: 1 };
        }
        let entry = Block { call: Some(1), ..Block::of(random) };
        Program { bodies: vec![vec![entry], blocks], budget: 4 * budget, seed: 1 }
    }

    /// The PTX text. Functions that exit the kernel store the thread's data first.
    pub fn text(&self) -> String {
        let mut out = ".version 7.0\n.target sm_75\n.address_size 64\n".to_string();
        let signature = |f| format!(".func (.reg .b32 o) f{f} (.reg .b32 i, .reg .b32 m, .reg .b64 d)");
        (1..self.bodies.len()).for_each(|f| _ = writeln!(out, "{};", signature(f)));
        for (f, blocks) in self.bodies.iter().enumerate().rev() {
            let locals = ".reg .b32 x, n, t, u, s;\n.reg .pred p;";
            if f == 0 {
                let (seed, budget) = (self.seed, self.budget);
                _ = write!(
                    out,
                    ".visible .entry k(.param .u64 q)\n{{\n{locals}\n.reg .b64 d, e;\n\
                     ld.param.u64 d, [q];\nmov.u32 t, %tid.x;\nmul.wide.u32 e, t, 4;\nadd.s64 d, d, e;\n\
                     mad.lo.u32 x, t, 2654435761, {seed};\nmov.u32 n, {budget};\nmov.u32 s, 0;\n"
                );
            } else {
                _ = writeln!(out, "{}\n{{\n{locals}\nmov.b32 x, i;\nmov.b32 n, m;\nmov.u32 s, 0;", signature(f));
            }
            blocks.iter().enumerate().for_each(|(at, block)| block_text(&mut out, f, at, block));
            let end = if f == 0 { "st.global.u32 [d], x;" } else { "mov.b32 o, x;" };
            _ = writeln!(out, "L{}:\nEND:\nxor.b32 x, x, s;\n{end}\nret;\n}}", blocks.len());
        }
        out
    }

    /// What each thread stores.
    pub fn results(&self) -> Vec<u8> {
        let first = |thread: u32| thread.wrapping_mul(2_654_435_761).wrapping_add(self.seed);
        let one = |thread| match self.follow(0, first(thread), self.budget) {
            Ok(x) | Err(x) => x.to_le_bytes(),
        };
        (0..THREADS).flat_map(one).collect()
    }

    /// The value that a body returns, or the thread's data when it exits.
    fn follow(&self, body: usize, mut x: u32, mut budget: i32) -> Result<u32, u32> {
        let (mut at, mut state) = (0, 0);
        while let Some(block) = self.bodies[body].get(at) {
            budget -= 1;
            if budget < 0 {
                break;
            }
            x = x.wrapping_mul(block.factor).wrapping_add(block.summand);
            x ^= x >> block.shift;
            state = block.state.unwrap_or(state);
            if let Some(callee) = block.call {
                x ^= self.follow(callee, x, budget >> 2)?;
            }
            if let Some((leave, shift)) = block.leave
                && x >> shift & 15 == leave.bits()
            {
                let returns = leave == Leave::Return && body != 0;
                return if returns { Ok(x.wrapping_mul(3).wrapping_add(1)) } else { Err(x) };
            }
            let taken = block.branches.iter().find(|b| b.0.holds(x, state)).map(|b| b.1);
            at = taken.or(block.jump).unwrap_or(at + 1);
        }
        Ok(x ^ state)
    }
}

/// One body of a random program.
fn anywhere(random: &mut Random, body: usize, functions: usize) -> Vec<Block> {
    let count = [3, 6, 10, 20, 40][random.below(5)];
    let hubs: Vec<usize> = (0..1 + random.below(3)).map(|_| random.below(count)).collect();
    let mut blocks: Vec<Block> = (0..count).map(|_| Block::of(random)).collect();
    for block in &mut blocks {
        let target = |random: &mut Random| match random.below(10) {
            0..6 => hubs[random.below(hubs.len())],
            _ => random.below(count),
        };
        for _ in 0..[0, 1, 1, 1, 2, 3][random.below(6)] {
            block.branches.push((Test::of(random), target(random)));
        }
        if functions != 0 && random.below(if body == 0 { 4 } else { 8 }) == 0 {
            block.call = Some(1 + random.below(functions));
        }
        if random.below(3) == 0 {
            block.state = Some(random.below(4) as u32);
        }
        if random.below(7) == 0 {
            let leave = [Leave::Return, Leave::Exit, Leave::Trap][random.below(3)];
            block.leave = Some((leave, random.below(20) as u32));
        }
        if random.below(5) < 2 {
            block.jump = Some(target(random));
        }
    }
    blocks
}

fn block_text(out: &mut String, body: usize, at: usize, block: &Block) {
    let Block { factor, summand, shift, .. } = block;
    _ = write!(
        out,
        "L{at}:\nsub.s32 n, n, 1;\nsetp.lt.s32 p, n, 0;\n@p bra END;\n\
         mad.lo.u32 x, x, {factor}, {summand};\nshr.u32 t, x, {shift};\nxor.b32 x, x, t;\n"
    );
    if let Some(state) = block.state {
        _ = writeln!(out, "mov.u32 s, {state};");
    }
    if let Some(callee) = block.call {
        _ = write!(out, "shr.s32 u, n, 2;\ncall.uni (t), f{callee}, (x, u, d);\nxor.b32 x, x, t;\n");
    }
    if let Some((leave, shift)) = block.leave {
        let bits = leave.bits();
        _ = write!(out, "shr.u32 t, x, {shift};\nand.b32 t, t, 15;\nsetp.ne.u32 p, t, {bits};\n@p bra K{at};\n");
        out.push_str(match leave {
            Leave::Return if body != 0 => "mad.lo.u32 o, x, 3, 1;\nret;\n",
            Leave::Return => "st.global.u32 [d], x;\nret;\n",
            Leave::Exit => "st.global.u32 [d], x;\nexit;\n",
            Leave::Trap => "trap;\n",
        });
        _ = writeln!(out, "K{at}:");
    }
    for (Test { of_state, shift, mask, value }, to) in &block.branches {
        let from = if *of_state { "s" } else { "x" };
        _ = write!(
            out,
            "shr.u32 t, {from}, {shift};\nand.b32 t, t, {mask};\nsetp.eq.u32 p, t, {value};\n@p bra L{to};\n"
        );
    }
    if let Some(to) = block.jump {
        _ = writeln!(out, "bra L{to};");
    }
}
