//! Poisons registers and stored data after a hazard, with values that are neither the old nor the
//! new one.
//!
//! Poisoning is deterministic and differs between lanes.

use super::super::block::Block;
use super::super::code::Space;
use super::super::exec::Machine;
use super::super::warp::Warp;
use super::accesses::{File, Run, Slot};
use super::footprint::Reach;
use super::hazard_timing::Hazard;
use super::taint_probe;
use crate::tables::latency::RegFile;

/// Bits that are flipped.
const FLIP: u32 = 0x5ac3_96d1;

/// Number of stores of a warp that are remembered.
const REMEMBERED: usize = 8;

/// The last stores of a warp; their data may be read later than subsequent instructions execute.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    list: [(u32, Vec<Reach>); REMEMBERED],
    next: usize,
}

impl Stores {
    /// Records the accesses of a store at `pc`; swaps the list with an old one.
    pub fn remember(&mut self, pc: u32, reaches: &mut Vec<Reach>) {
        let slot = &mut self.list[self.next % REMEMBERED];
        slot.0 = pc;
        std::mem::swap(&mut slot.1, reaches);
        self.next += 1;
    }

    /// Poisons what the last store at `pc` wrote on some lanes.
    pub fn spoil(&self, m: &mut Machine, block: &mut Block, warp: usize, pc: u32, lanes: u32) {
        let newest = (0..REMEMBERED).map(|back| &self.list[(self.next + 2 * REMEMBERED - 1 - back) % REMEMBERED]);
        let Some((_, reaches)) = newest.into_iter().find(|(at, list)| *at == pc && !list.is_empty()) else { return };
        for r in reaches.iter().filter(|r| lanes >> r.lane & 1 != 0) {
            let flip = FLIP.rotate_left(r.lane as u32).to_le_bytes();
            let width = usize::from(r.bytes);
            let at = r.at as usize;
            let each = block.warps[warp].local_bytes;
            let place = match r.space {
                Space::Shared => block.shared.get_mut(at..at + width),
                Space::Local => block.warps[warp].local.get_mut(r.lane * each + at..r.lane * each + at + width),
                _ => m.global.slice(r.at, u64::from(r.bytes), true).ok(),
            };
            let bytes = place.into_iter().flatten().zip(flip.into_iter().cycle());
            bytes.for_each(|(byte, flip)| *byte ^= flip);
        }
    }
}

/// Poisons the registers of a hazard.
pub fn registers(w: &mut Warp, hazard: &Hazard) {
    for (file, register) in hazard.read.iter().chain(&hazard.results) {
        let file = match file {
            RegFile::R => File::Reg,
            RegFile::UR => File::UReg,
            RegFile::P => File::Pred,
            RegFile::UP => File::UPred,
            RegFile::B => continue,
        };
        let run = Run { file, first: *register, count: 1, slot: Slot::A };
        for cell in taint_probe::cells(run, hazard.lanes) {
            let flip = if matches!(file, File::Pred | File::UPred) { 1 } else { FLIP.rotate_left(cell.lane as u32) };
            taint_probe::set(w, cell, taint_probe::get(w, cell) ^ flip);
        }
    }
}
