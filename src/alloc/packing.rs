//! Packs general registers: where the first assignment leaves gaps, tries other ones and keeps
//! that with the fewest registers.
//!
//! They differ in how wide a class must be to be placed before the narrower ones, and in where a
//! narrow class goes: to the lowest free register, or to one whose neighbours are taken, so that
//! aligned pairs and quads stay whole. Nothing is spilled here.

use super::FILES;
use super::assign::{Assigner, Place, sort};
use super::bundles::{Class, Classes};
use super::interference::Mask;
use crate::arrays::Each;
use crate::ori::File;
use smallvec::SmallVec;

/// Another way to assign.
#[derive(Clone, Copy)]
struct Way {
    /// Classes from this width on come first.
    wide: i32,
    /// Whether narrow classes go where their neighbours are taken.
    fits: bool,
}

/// The ways, those that most often need fewer registers first.
const WAYS: [Way; 5] = [
    Way { wide: 16, fits: true },
    Way { wide: 4, fits: false },
    Way { wide: 2, fits: false },
    Way { wide: 4, fits: true },
    Way { wide: 8, fits: false },
];

/// How often a class that finds no place is moved to the front.
const MOVES: usize = 5;
/// Below this part of all classes it costs less to release one by one than to note afresh what the
/// others take.
const FEW: usize = 32;
/// Classes that are placed at most before it gives up, in all and for each class of the function:
/// 6,000 took 3 % more time on Triton's files for 0.1 % fewer registers there and on production's.
const PLACED: usize = 2_000;
const PLACED_EACH: usize = 3;

/// Assigns the general registers of these classes, which have a place each, in fewer registers if
/// one of the ways does so.
pub fn pack(assigner: &mut Assigner, order: &[u32]) {
    let ids = general(assigner, order);
    let least = least(assigner);
    let (mut used, mut budget) = (top(assigner.classes), budget(&ids));
    let bases =
        |classes: &Classes| -> Vec<Option<i32>> { ids.iter().map(|id| classes.classes[*id as usize].base).collect() };
    // What a way that failed has taken off its registers stays so for the next one.
    let (mut best, mut placed) = (bases(assigner.classes), true);
    let alike = WAYS.each(|way| alike(assigner.classes, &ids, way));
    // What each way that failed took off the budget, with how many registers.
    let mut failed: SmallVec<[(Alike, i32, usize); WAYS.len()]> = SmallVec::new();
    for (way, alike) in WAYS.into_iter().zip(alike) {
        if used <= least || budget == 0 {
            break;
        }
        if let Some((.., spent)) = failed.iter().find(|of| (of.0, of.1) == (alike, used)) {
            budget = budget.saturating_sub(*spent);
            continue;
        }
        if placed {
            release(assigner, &ids);
        }
        let before = budget;
        placed = try_way(assigner, &ids, way, used - 1, &mut budget);
        if placed {
            used = top(assigner.classes);
            best = bases(assigner.classes);
        } else {
            failed.push((alike, used, before - budget));
        }
    }
    if placed {
        return;
    }
    for (id, base) in ids.iter().zip(best) {
        if let Some(base) = base {
            assigner.take(*id, base);
        }
    }
}

/// Assigns the general registers of these classes, of which some have no place, without spilling;
/// false, with none of them placed, if no way does so.
pub fn fit(assigner: &mut Assigner, order: &[u32]) -> bool {
    let ids = general(assigner, order);
    // What was evicted has left its registers, so those that are taken are noted afresh.
    ids.iter().for_each(|id| assigner.classes.classes[*id as usize].base = None);
    assigner.classes.note_again(&FILES);
    let mut budget = budget(&ids) / 2;
    WAYS.into_iter().any(|way| try_way(assigner, &ids, way, 256, &mut budget))
}

/// What a way is to some classes: how many are wide, and whether narrow ones go where they fit.
/// Ways that differ in nothing of this do the same.
type Alike = (usize, bool);

fn alike(classes: &Classes, ids: &[u32], way: Way) -> Alike {
    let wide = |id: &&u32| classes.classes[**id as usize].width() >= way.wide;
    (ids.iter().filter(wide).count(), way.fits)
}

/// How many classes may be placed.
fn budget(ids: &[u32]) -> usize {
    (PLACED_EACH * ids.len()).max(PLACED)
}

fn general(assigner: &Assigner, order: &[u32]) -> Vec<u32> {
    let general = |id: &&u32| assigner.classes.classes[**id as usize].file == File::R;
    order.iter().filter(general).copied().collect()
}

/// Assigns the classes to registers below a limit; false, with none of them placed, if one finds
/// no place. That one comes first the next time.
fn try_way(assigner: &mut Assigner, ids: &[u32], way: Way, limit: i32, budget: &mut usize) -> bool {
    let mut order = ids.to_vec();
    sort(&mut order, |id| {
        let class = &assigner.classes.classes[id as usize];
        let width = class.width();
        let first = if width >= way.wide { -width } else { 0 };
        Place { last: false, first, start: class.start().map_or(0, |start| start + 1), width: -width }
    });
    for _ in 0..MOVES {
        if *budget == 0 {
            return false;
        }
        let stuck = order.iter().position(|id| !place(assigner, *id, way, limit));
        *budget = budget.saturating_sub(stuck.unwrap_or(order.len()));
        let Some(at) = stuck else { return true };
        release(assigner, &order[..at]);
        order[..=at].rotate_right(1);
    }
    false
}

/// Takes general classes off their registers.
fn release(assigner: &mut Assigner, ids: &[u32]) {
    let classes = &mut assigner.classes;
    if ids.len() < classes.classes.len() / FEW {
        for id in ids {
            assigner.release(*id);
        }
        return;
    }
    ids.iter().for_each(|id| classes.classes[*id as usize].base = None);
    classes.note_again(&[File::R]);
}

fn place(assigner: &mut Assigner, id: u32, way: Way, limit: i32) -> bool {
    let class = &assigner.classes.classes[id as usize];
    let (open, taken) = assigner.open(id, Mask::default());
    // The last column must be below the limit too.
    let open = open.and(Mask::below(limit - class.width() + 1));
    let best = if way.fits && class.width() <= 2 && class.columns.len() as i32 == class.width() {
        fitting(class, open, taken)
    } else {
        open.lowest()
    };
    best.map(|base| assigner.take(id, base)).is_some()
}

/// The register whose neighbours, within its pair and then its quad, are taken as far as possible.
fn fitting(class: &Class, open: Mask, taken: Mask) -> Option<i32> {
    let width = class.width();
    // Of a run of registers within 64, how many are free.
    let free = |from: i32, count: u32| {
        let bits = taken.0[from as usize / 64] >> (from % 64) & ((1 << count) - 1);
        (count - bits.count_ones()) as i32
    };
    // Its own registers are free, and those of a pair are mostly in one quad.
    let least = if class.modulus > 1 && class.residue & 1 == 0 { width } else { 1 };
    let mut best: Option<((i32, i32), i32)> = None;
    for base in open.iter() {
        let pair = if width == 1 { free(base ^ 1, 1) } else { 0 };
        let gaps = (pair, free(base & !3, 4));
        if best.is_none_or(|(least, _)| gaps < least) {
            best = Some((gaps, base));
            if gaps == (0, least) {
                break;
            }
        }
    }
    best.map(|(_, base)| base)
}

/// One more than the highest general register in use.
fn top(classes: &Classes) -> i32 {
    let general = classes.classes.iter().filter(|class| class.file == File::R);
    let highest = general.filter_map(|class| Some(class.base? + class.columns.last()?.slot + 1));
    highest.max().unwrap_or(0)
}

/// Most general registers that live at once, and those among them that nobody may use.
fn least(assigner: &Assigner) -> i32 {
    let most = assigner.choice.peaks[File::R as usize] as usize;
    let barred = assigner.classes.barred.always[File::R as usize];
    (0..256).filter(|n| !barred.contains(*n)).nth(most).map_or(256, |n| n)
}
