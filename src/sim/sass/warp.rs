//! The state of a warp: registers of 32 lanes, uniform registers, predicates, convergence barriers, what lanes wait for.
//!
//! Input and output: reads and writes by the executor. Invariant: RZ, URZ read as zero and PT, UPT as true whatever is
//! written; a lane outside `alive` never runs again; `running` lanes are alive and wait for nothing.

use super::code::{Dst, From, Pred, Src};
use super::kept::Kept;

/// Lanes of a warp.
pub const LANES: usize = 32;
const RZ: usize = 255;

/// What a lane waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    #[default]
    Nothing,
    /// The lanes of its copy of this convergence barrier, at its pc.
    Converge(u8),
    /// These lanes, at any WARPSYNC.
    Warp(u32),
    /// The block barrier of this number.
    Block(u8),
}

/// One warp.
#[derive(Clone, Debug)]
pub struct Warp {
    regs: Vec<[u32; LANES]>,
    uregs: [u32; 256],
    preds: [u32; 8],
    upreds: [bool; 8],
    /// Next instruction of each lane, as an index.
    pub pc: [u32; LANES],
    pub alive: u32,
    pub running: u32,
    pub wait: [Wait; LANES],
    /// Convergence barriers: each lane has its own copy of each mask.
    pub bars: [[u32; LANES]; 16],
    /// The region that each of them stands for: the number of its BSSY, 0 for none.
    pub regions: [[u32; LANES]; 16],
    pub last_region: u32,
    /// Regions whose masks lie in registers.
    pub kept: Kept,
    /// Lanes that executed YIELD and have not reached a convergence point since.
    pub yielded: u32,
    /// Result of the last block-barrier reduction.
    pub gathered: u32,
    /// Local memory, lane after lane.
    pub local: Vec<u8>,
    pub local_bytes: usize,
    /// Number within the block, and the lane that ran last.
    pub index: u32,
    pub last_lane: u32,
    pub instructions: u64,
}

impl Warp {
    /// A warp about to start at instruction 0 with these lanes.
    pub fn new(index: u32, lanes: u32, registers: usize, local_bytes: usize) -> Warp {
        Warp {
            regs: vec![[0; LANES]; registers.clamp(1, 256)],
            uregs: [0; 256],
            preds: [0; 8],
            upreds: [false; 8],
            pc: [0; LANES],
            alive: lanes,
            running: lanes,
            wait: [Wait::Nothing; LANES],
            bars: [[0; LANES]; 16],
            regions: [[0; LANES]; 16],
            last_region: 0,
            kept: Kept::default(),
            yielded: 0,
            gathered: 0,
            local: vec![0; local_bytes * LANES],
            local_bytes,
            index,
            last_lane: LANES as u32 - 1,
            instructions: 0,
        }
    }

    /// Puts something into every register of either file, and into the predicates.
    pub fn fill(&mut self, mut next: impl FnMut() -> u32) {
        self.regs.iter_mut().flatten().for_each(|word| *word = next());
        self.uregs.iter_mut().for_each(|word| *word = next());
        self.preds.iter_mut().for_each(|mask| *mask = next());
        self.upreds.iter_mut().for_each(|holds| *holds = next() & 1 != 0);
    }

    /// A register of a lane. Registers beyond the function's count read as zero, as RZ does.
    pub fn reg(&self, index: usize, lane: usize) -> u32 {
        if index == RZ { 0 } else { self.regs.get(index).map_or(0, |row| row[lane]) }
    }

    /// Writes a register of a lane.
    #[inline]
    pub fn set_reg(&mut self, index: usize, lane: usize, value: u32) {
        if index != RZ
            && let Some(row) = self.regs.get_mut(index)
        {
            row[lane] = value;
        }
    }

    /// A uniform register.
    pub fn ureg(&self, index: usize) -> u32 {
        if index == RZ { 0 } else { self.uregs[index & 255] }
    }

    /// A source value of a lane, modifiers applied.
    #[inline]
    pub fn get(&self, src: &Src, lane: usize) -> u64 {
        let bits = match src.from {
            From::Zero => 0,
            From::Value(bits) => return bits,
            From::Reg(255) | From::UReg(255) => 0,
            From::Reg(r) if src.wide => {
                let r = usize::from(r);
                u64::from(self.reg(r, lane)) | u64::from(self.reg(r + 1, lane)) << 32
            }
            From::Reg(r) => self.reg(r.into(), lane).into(),
            From::UReg(r) if src.wide => {
                let r = usize::from(r);
                u64::from(self.ureg(r)) | u64::from(self.ureg(r + 1)) << 32
            }
            From::UReg(r) => self.ureg(r.into()).into(),
        };
        src.fix(bits)
    }

    /// The source values of some lanes, modifiers applied; of others anything. The same as `get` of each, without asking each time
    /// where it comes from.
    #[inline]
    pub fn gather(&self, src: &Src, lanes: u32) -> [u64; LANES] {
        let mut out = [0; LANES];
        match src.from {
            From::Value(bits) => out = [bits; LANES],
            From::Reg(r) if r != 255 && !src.wide && lanes.count_ones() > 4 => {
                if let Some(row) = self.regs.get(usize::from(r)) {
                    out.iter_mut().zip(row).for_each(|(out, word)| *out = src.fix(u64::from(*word)));
                } else {
                    out = [src.fix(0); LANES];
                }
            }
            _ => lanes_of(lanes).for_each(|lane| out[lane] = self.get(src, lane)),
        }
        out
    }

    /// Writes a result word of a lane.
    #[inline]
    pub fn set(&mut self, dst: Dst, word: usize, lane: usize, value: u32) {
        match dst {
            Dst::Nowhere | Dst::Reg(255) | Dst::UReg(255) => {}
            Dst::Reg(r) => self.set_reg(usize::from(r) + word, lane, value),
            Dst::UReg(r) => self.uregs[(usize::from(r) + word) & 255] = value,
        }
    }

    /// The lanes on which a predicate holds.
    pub fn pred(&self, p: Pred) -> u32 {
        let mask = match (p.index, p.uniform) {
            (7, _) => u32::MAX,
            (i, false) => self.preds[usize::from(i & 7)],
            (i, true) if self.upreds[usize::from(i & 7)] => u32::MAX,
            (_, true) => 0,
        };
        if p.not { !mask } else { mask }
    }

    /// Writes a predicate on some lanes; a uniform one takes the value of the lowest of them.
    pub fn set_pred(&mut self, p: Pred, lanes: u32, value: u32) {
        let index = usize::from(p.index & 7);
        match (index, p.uniform) {
            (7, _) => {}
            (_, false) => self.preds[index] = self.preds[index] & !lanes | value & lanes,
            (_, true) if lanes != 0 => self.upreds[index] = value >> lanes.trailing_zeros() & 1 != 0,
            (_, true) => {}
        }
    }

    /// The predicate registers P0 to P6 of a lane as bits.
    pub fn pred_bits(&self, lane: usize) -> u32 {
        (0..7).fold(0, |bits, i| bits | (self.preds[i] >> lane & 1) << i)
    }

    /// The uniform predicates as bits.
    pub fn upred_bits(&self) -> u32 {
        (0..7).fold(0, |bits, i| bits | u32::from(self.upreds[i]) << i)
    }

    /// The local memory of a lane.
    pub fn local_of(&mut self, lane: usize) -> &mut [u8] {
        &mut self.local[lane * self.local_bytes..(lane + 1) * self.local_bytes]
    }

    /// Ends lanes.
    pub fn exit(&mut self, lanes: u32) {
        self.alive &= !lanes;
        self.running &= !lanes;
    }

    /// Makes lanes wait where their pc is.
    pub fn suspend(&mut self, lanes: u32, wait: impl Fn(usize) -> Wait) {
        self.running &= !lanes;
        for lane in lanes_of(lanes) {
            self.wait[lane] = wait(lane);
        }
    }

    /// Lets waiting lanes go on with the next instruction.
    pub fn release(&mut self, lanes: u32) {
        self.running |= lanes & self.alive;
        for lane in lanes_of(lanes) {
            self.wait[lane] = Wait::Nothing;
            self.pc[lane] += 1;
        }
    }

    /// Lanes whose next instruction is this one. All are asked, so that it is one comparison of vectors.
    pub fn standing_at(&self, pc: u32) -> u32 {
        self.pc.iter().enumerate().fold(0, |mask, (lane, at)| mask | u32::from(*at == pc) << lane)
    }

    /// Lanes for which a condition holds.
    pub fn lanes_where(&self, among: u32, holds: impl Fn(usize) -> bool) -> u32 {
        lanes_of(among).filter(|lane| holds(*lane)).fold(0, |mask, lane| mask | 1 << lane)
    }
}

/// The lanes of a mask, lowest first.
pub fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}
