//! Values that are neither the old nor the new one: what somebody gets who did not wait.
//!
//! Input: a hazard. Output: changed registers, or changed memory where a store read its data too late. Invariant: the same bits each time,
//! other ones in each lane.

use super::super::block::Block;
use super::super::code::Space;
use super::super::exec::Machine;
use super::super::warp::Warp;
use super::reach::Reach;
use super::time::Hazard;
use super::touch::{File, Run, Slot};
use super::trial;
use crate::tables::latency::RegFile;

/// Bits that are flipped.
const FLIP: u32 = 0x5ac3_96d1;

/// Stores of a warp that are remembered.
const REMEMBERED: usize = 8;

/// The last stores of a warp: their data may be read later than what follows them.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    list: [(u32, Vec<Reach>); REMEMBERED],
    next: usize,
}

impl Stores {
    /// A store at a pc was executed; the list of its accesses is taken over, an old one given back.
    pub fn remember(&mut self, pc: u32, reaches: &mut Vec<Reach>) {
        let slot = &mut self.list[self.next % REMEMBERED];
        slot.0 = pc;
        std::mem::swap(&mut slot.1, reaches);
        self.next += 1;
    }

    /// What a store at a pc wrote last is no value any more on some lanes.
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

/// Registers that a hazard spoils.
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
        for cell in trial::cells(run, hazard.lanes) {
            let flip = if matches!(file, File::Pred | File::UPred) { 1 } else { FLIP.rotate_left(cell.lane as u32) };
            trial::set(w, cell, trial::get(w, cell) ^ flip);
        }
    }
}
