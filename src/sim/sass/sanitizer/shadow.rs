//! The undefined bits of a warp's registers and local memory.
//!
//! A set bit means undefined, and a warp starts with everything undefined. For general registers
//! `lanes` says on which lanes `bits` is valid at all, so that clearing a register costs one word.

use super::super::warp::LANES;
use super::accesses::{File, Run};

/// The shadow of a warp.
#[derive(Clone, Debug)]
pub struct Shadow {
    bits: Vec<[u32; LANES]>,
    lanes: Vec<u32>,
    uniform: [u32; 256],
    preds: [u32; 8],
    upreds: u8,
    /// The shadow of local memory of all lanes, one after the other; empty until first use.
    pub local: Vec<u8>,
}

impl Shadow {
    /// The shadow of a warp that has written nothing; `given` is the uniform register that the
    /// launch sets, if any.
    pub fn new(registers: usize, given: Option<u8>) -> Shadow {
        let registers = registers.clamp(1, 256);
        let mut uniform = [u32::MAX; 256];
        given.into_iter().for_each(|register| uniform[usize::from(register)] = 0);
        Shadow {
            bits: vec![[u32::MAX; LANES]; registers],
            lanes: vec![u32::MAX; registers],
            uniform,
            preds: [u32::MAX; 8],
            upreds: 0x7f,
            local: Vec::new(),
        }
    }

    /// Mask of the lanes on which a register of the range has an undefined bit.
    pub fn lanes_of(&self, run: Run) -> u32 {
        let all = |poisoned: bool| if poisoned { u32::MAX } else { 0 };
        match run.file {
            File::Reg => run.registers().fold(0, |mask, r| mask | self.lanes.get(r).copied().unwrap_or(0)),
            File::UReg => all(run.registers().any(|r| self.uniform[r & 255] != 0)),
            File::Pred => self.preds[usize::from(run.first & 7)],
            File::UPred => all(self.upreds >> run.first & 1 != 0),
        }
    }

    /// The undefined bits of a register on a lane.
    pub fn get(&self, file: File, register: usize, lane: usize) -> u32 {
        match file {
            File::Reg => match self.lanes.get(register) {
                Some(lanes) if lanes >> lane & 1 != 0 => self.bits[register][lane],
                _ => 0,
            },
            File::UReg => self.uniform[register & 255],
            File::Pred => self.preds[register & 7] >> lane & 1,
            File::UPred => u32::from(self.upreds >> register & 1),
        }
    }

    /// Sets the undefined bits of a register on a lane.
    pub fn set(&mut self, file: File, register: usize, lane: usize, bits: u32) {
        let bit = 1u32 << lane;
        match file {
            File::Reg => {
                if let Some(lanes) = self.lanes.get_mut(register) {
                    self.bits[register][lane] = bits;
                    *lanes = if bits == 0 { *lanes & !bit } else { *lanes | bit };
                }
            }
            File::UReg => self.uniform[register & 255] = bits,
            File::Pred => {
                let mask = &mut self.preds[register & 7];
                *mask = if bits == 0 { *mask & !bit } else { *mask | bit };
            }
            File::UPred if bits == 0 => self.upreds &= !(1 << register),
            File::UPred => self.upreds |= 1 << register,
        }
    }

    /// Marks the registers of a range as defined on some lanes.
    pub fn clear(&mut self, run: Run, lanes: u32) {
        if lanes == 0 {
            return;
        }
        match run.file {
            File::Reg => run.registers().for_each(|r| {
                if let Some(mask) = self.lanes.get_mut(r) {
                    *mask &= !lanes;
                }
            }),
            File::UReg => run.registers().for_each(|r| self.uniform[r & 255] = 0),
            File::Pred => self.preds[usize::from(run.first & 7)] &= !lanes,
            File::UPred => self.upreds &= !(1 << run.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::accesses::Slot;
    use super::*;

    #[test]
    fn what_is_written_has_a_value() {
        let mut s = Shadow::new(8, None);
        let run = Run { file: File::Reg, first: 2, count: 2, slot: Slot::A };
        assert_eq!(s.lanes_of(run), u32::MAX);
        s.clear(run, 0xff);
        assert_eq!((s.lanes_of(run), s.get(File::Reg, 2, 3), s.get(File::Reg, 3, 9)), (!0xff, 0, u32::MAX));
        s.set(File::Reg, 3, 1, 0xf0);
        assert_eq!((s.lanes_of(run), s.get(File::Reg, 3, 1)), (!0xff | 2, 0xf0));
        s.set(File::UPred, 2, 0, 0);
        assert_eq!((s.get(File::UPred, 2, 5), s.get(File::UPred, 3, 5)), (0, 1));
    }
}
