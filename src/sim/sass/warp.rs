//! The state of a warp: registers of 32 lanes, uniform registers, predicates, convergence barriers,
//! and what each lane waits for.
//!
//! RZ and URZ read as zero, PT and UPT as true, whatever is written to them. A lane outside `alive`
//! never runs again, and the lanes of `running` are alive and do not wait.

use super::code::{Dst, From, Pred, Src};
use super::kept::Kept;
use crate::arrays::Each;
use crate::tables::registers::Callee;

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
    /// The lanes of this mask, at any WARPSYNC, and whether they go on apart from others then.
    Warp(u32, Option<Apart>),
    /// The completion of this block barrier.
    Block(u8),
    /// The completion of the barrier of the cluster.
    Cluster,
    /// The lanes of this mask, which have switched it off by a write of MACTIVE.
    Off(u32),
}

/// How lanes that a WARPSYNC lets go run apart from the other lanes at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// In turn with the others, until they meet again (EXCLUSIVE).
    Interleaved,
    /// While the others stand still, until ENDCOLLECTIVE (COLLECTIVE).
    Section,
}

/// Lanes that run with others of their squares, and where they were.
#[derive(Clone, Debug)]
pub struct Lent {
    lanes: u32,
    alive: u32,
    running: u32,
    pc: [u32; LANES],
    wait: [Wait; LANES],
}

/// Lanes of a square, which derivatives are taken from.
pub const SQUARE: usize = 4;

/// What is in a register that a function of the driver has changed.
const LOST: u32 = 0xdead_beef;

/// The registers of a file that a function of the driver may change.
fn lost(file: &'static str) -> impl Iterator<Item = u16> {
    (0..256).filter(move |number| !Callee::Driver.keeps(file).any(|run| run.contains(number)))
}

/// One warp.
#[derive(Clone, Debug)]
pub struct Warp {
    regs: Vec<[u32; LANES]>,
    uregs: [u32; 256],
    preds: [u32; 8],
    upreds: [bool; 8],
    /// The next instruction of each lane, as an index.
    pub pc: [u32; LANES],
    /// Lanes that have not ended.
    pub alive: u32,
    /// Live lanes that each lane counts as ended, by a write of MEXITED.
    pub ended: [u32; LANES],
    /// Live lanes that do not wait.
    pub running: u32,
    /// What each lane waits for.
    pub wait: [Wait; LANES],
    /// Convergence barriers: each lane has its own copy of each mask.
    pub bars: [[u32; LANES]; 16],
    /// The region of each of these masks: the number of its BSSY, 0 for none.
    pub regions: [[u32; LANES]; 16],
    /// The number of the last BSSY.
    pub last_region: u32,
    /// Regions whose masks are saved in registers.
    pub kept: Kept,
    /// Lanes that have executed YIELD and have not reached a convergence point since.
    pub yielded: u32,
    /// The mask whose lanes a lane runs with, and apart from all others.
    pub apart: [Option<(u32, Apart)>; LANES],
    /// Whether a lane has such a mask.
    any_apart: bool,
    /// The lanes that are inside a section.
    section: u32,
    /// The lanes of squares that stand elsewhere, or have ended, and run with the others.
    lent: Option<Box<Lent>>,
    /// The register pair that RPCMOV reaches, of each lane.
    pub pair: [[u32; LANES]; 2],
    /// Result of the last reduction at a block barrier.
    pub gathered: u32,
    /// Local memory of all lanes, one after the other.
    pub local: Vec<u8>,
    /// Size of a lane's local memory in bytes.
    pub local_bytes: usize,
    /// The warp's number in its block.
    pub index: u32,
    /// The lane that led the group that ran last.
    pub last_lane: u32,
    /// The group that runs next, because it has not given way to others; 0 for none.
    pub held: u32,
    /// Number of instructions executed by the warp.
    pub instructions: u64,
    /// Registers that a lane has now.
    pub limit: u16,
}

impl Warp {
    /// A warp that is about to start at instruction 0; `lanes` are those that exist.
    pub fn new(index: u32, lanes: u32, registers: usize, local_bytes: usize) -> Warp {
        Warp {
            regs: vec![[0; LANES]; registers.clamp(1, 256)],
            uregs: [0; 256],
            preds: [0; 8],
            upreds: [false; 8],
            pc: [0; LANES],
            alive: lanes,
            ended: [0; LANES],
            running: lanes,
            wait: [Wait::Nothing; LANES],
            bars: [[0; LANES]; 16],
            regions: [[0; LANES]; 16],
            last_region: 0,
            kept: Kept::default(),
            yielded: 0,
            apart: [None; LANES],
            any_apart: false,
            section: 0,
            lent: None,
            pair: [[0; LANES]; 2],
            gathered: 0,
            local: vec![0; local_bytes * LANES],
            local_bytes,
            index,
            last_lane: LANES as u32 - 1,
            held: 0,
            instructions: 0,
            limit: registers as u16,
        }
    }

    /// Fills all registers and predicates with values from `next`.
    pub fn fill(&mut self, mut next: impl FnMut() -> u32) {
        self.regs.iter_mut().flatten().for_each(|word| *word = next());
        self.uregs.iter_mut().for_each(|word| *word = next());
        self.preds.iter_mut().for_each(|mask| *mask = next());
        self.upreds.iter_mut().for_each(|holds| *holds = next() & 1 != 0);
    }

    /// Reads a register of a lane. RZ and registers beyond the declared count read as zero.
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

    /// Changes the registers and predicates of a lane that a function of the driver may change.
    pub fn lose(&mut self, lane: usize) {
        lost("R").for_each(|number| self.set_reg(number.into(), lane, LOST));
        self.preds.iter_mut().for_each(|mask| *mask ^= 1 << lane);
    }

    /// Changes the uniform ones.
    pub fn lose_uniform(&mut self) {
        lost("UR").for_each(|number| self.uregs[usize::from(number)] = LOST);
        self.upreds.iter_mut().for_each(|holds| *holds = !*holds);
    }

    /// Whether a function of the driver has changed a pair of uniform registers.
    pub fn is_lost(&self, first: u8) -> bool {
        let first = usize::from(first);
        [first, first + 1].each(|number| self.ureg(number)) == [LOST; 2]
    }

    /// Reads a uniform register.
    pub fn ureg(&self, index: usize) -> u32 {
        if index == RZ { 0 } else { self.uregs[index & 255] }
    }

    /// Reads a source operand of a lane and applies its modifiers.
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

    /// Reads a source operand of several lanes; the values of other lanes are unspecified.
    /// Equivalent to [`Warp::get`] for each lane, but faster.
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

    /// Writes a word of a result for a lane.
    #[inline]
    pub fn set(&mut self, dst: Dst, word: usize, lane: usize, value: u32) {
        match dst {
            Dst::Nowhere | Dst::Reg(255) | Dst::UReg(255) => {}
            Dst::Reg(r) => self.set_reg(usize::from(r) + word, lane, value),
            Dst::UReg(r) => self.uregs[(usize::from(r) + word) & 255] = value,
        }
    }

    /// Mask of the lanes on which a predicate is true.
    pub fn pred(&self, p: Pred) -> u32 {
        let mask = match (p.index, p.uniform) {
            (7, _) => u32::MAX,
            (i, false) => self.preds[usize::from(i & 7)],
            (i, true) if self.upreds[usize::from(i & 7)] => u32::MAX,
            (_, true) => 0,
        };
        if p.not { !mask } else { mask }
    }

    /// Writes a predicate on some lanes; a uniform predicate takes the value of the lowest of them.
    pub fn set_pred(&mut self, p: Pred, lanes: u32, value: u32) {
        let index = usize::from(p.index & 7);
        match (index, p.uniform) {
            (7, _) => {}
            (_, false) => self.preds[index] = self.preds[index] & !lanes | value & lanes,
            (_, true) if lanes != 0 => self.upreds[index] = value >> lanes.trailing_zeros() & 1 != 0,
            (_, true) => {}
        }
    }

    /// The predicates P0 to P6 of a lane as bits.
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

    /// Makes lanes wait at their current pc.
    pub fn suspend(&mut self, lanes: u32, wait: impl Fn(usize) -> Wait) {
        self.running &= !lanes;
        for lane in lanes_of(lanes) {
            self.wait[lane] = wait(lane);
        }
    }

    /// Lets waiting lanes continue with the next instruction.
    pub fn release(&mut self, lanes: u32) {
        self.running |= lanes & self.alive;
        self.rejoin(lanes);
        for lane in lanes_of(lanes) {
            if let Wait::Warp(mask, Some(apart)) = self.wait[lane] {
                self.apart[lane] = Some((mask & self.alive, apart));
                self.any_apart = true;
            }
            self.wait[lane] = Wait::Nothing;
            self.pc[lane] += 1;
        }
    }

    /// The lanes that run next together: those at one pc, of one mask where lanes go on apart. The
    /// group of a section is the only one that runs until the section ends.
    pub fn next_group(&mut self) -> Option<u32> {
        let alone = self.running & self.section;
        let among = if alone == 0 { self.running } else { alone };
        let turned = among.rotate_right(self.last_lane + 1);
        if turned == 0 {
            return None;
        }
        let lead = ((turned.trailing_zeros() + self.last_lane + 1) % LANES as u32) as usize;
        self.last_lane = lead as u32;
        let mut group = among & self.standing_at(self.pc[lead]);
        if self.any_apart {
            let apart = self.apart[lead];
            group = self.lanes_where(group, |lane| self.apart[lane] == apart);
            if let Some((_, Apart::Section)) = apart {
                self.section = group;
            }
        }
        Some(group)
    }

    /// Makes all lanes of the squares that have a lane of the mask go on with a group, and with
    /// nobody else.
    ///
    /// # Errors
    ///
    /// Lanes that do so already.
    pub fn lend(&mut self, group: u32, mask: u32) -> Result<(), String> {
        if self.lent.is_some() {
            return Err("squares of lanes inside of squares of lanes".to_string());
        }
        let Some(lead) = lanes_of(group).next() else { return Ok(()) };
        let all = lanes_of(mask).fold(0, |all, lane| all | ((1 << SQUARE) - 1) << (lane / SQUARE * SQUARE));
        let lanes = all & !group;
        let (alive, running) = (self.alive & lanes, self.running & lanes);
        self.lent = Some(Box::new(Lent { lanes, alive, running, pc: self.pc, wait: self.wait }));
        for lane in lanes_of(lanes) {
            (self.pc[lane], self.wait[lane]) = (self.pc[lead], Wait::Nothing);
        }
        self.alive |= lanes;
        self.running |= lanes;
        self.section = group | lanes;
        Ok(())
    }

    /// Sends the lanes back that run with others of their squares; returns whether there were any.
    pub fn give_back(&mut self) -> bool {
        let Some(lent) = self.lent.take() else { return false };
        for lane in lanes_of(lent.lanes) {
            (self.pc[lane], self.wait[lane]) = (lent.pc[lane], lent.wait[lane]);
        }
        self.alive = self.alive & !lent.lanes | lent.alive;
        self.running = self.running & !lent.lanes | lent.running;
        self.section = 0;
        true
    }

    /// Whether lanes run with others of their squares.
    pub fn lends(&self) -> bool {
        self.lent.is_some()
    }

    /// The lanes that run with others of their squares although they have ended: they have no
    /// memory any more.
    pub fn ghosts(&self) -> u32 {
        self.lent.as_ref().map_or(0, |lent| lent.lanes & !lent.alive)
    }

    /// Ends what keeps these lanes apart from the others.
    pub fn rejoin(&mut self, lanes: u32) {
        if self.any_apart {
            lanes_of(lanes).for_each(|lane| self.apart[lane] = None);
            self.section &= !lanes;
            self.any_apart = self.apart.iter().any(Option::is_some);
        }
    }

    /// Mask of the lanes whose next instruction is `pc`. It looks at all lanes, so that it compiles
    /// to one vector comparison.
    pub fn standing_at(&self, pc: u32) -> u32 {
        self.pc.iter().enumerate().fold(0, |mask, (lane, at)| mask | u32::from(*at == pc) << lane)
    }

    /// Mask of the lanes among `among` for which the condition is true.
    pub fn lanes_where(&self, among: u32, holds: impl Fn(usize) -> bool) -> u32 {
        lanes_of(among).filter(|lane| holds(*lane)).fold(0, |mask, lane| mask | 1 << lane)
    }
}

/// The lanes of a mask in ascending order.
pub fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}
