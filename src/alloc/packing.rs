//! Packs general registers: where the first assignment leaves gaps, tries other ones and keeps
//! that with the fewest registers.
//!
//! They differ in how wide a class must be to be placed before the narrower ones, and in where a
//! narrow class goes: to the lowest free register, or to one whose neighbours are taken, so that
//! aligned pairs and quads stay whole. Nothing is spilled here.

use super::assign::Assigner;
use super::bundles::{Class, Classes};
use super::interference::Mask;
use crate::ori::File;

/// Another way to assign.
#[derive(Clone, Copy)]
struct Way {
    /// Classes from this width on come first.
    wide: i32,
    /// Whether narrow classes go where their neighbours are taken.
    fits: bool,
}

const WAYS: [Way; 7] = [
    Way { wide: 16, fits: true },
    Way { wide: 4, fits: false },
    Way { wide: 4, fits: true },
    Way { wide: 2, fits: false },
    Way { wide: 2, fits: true },
    Way { wide: 8, fits: false },
    Way { wide: 8, fits: true },
];

/// Assigns the general registers of these classes, which have a place each, in fewer registers if
/// one of the ways does so.
pub fn pack(assigner: &mut Assigner, order: &[u32]) {
    let general = |id: &&u32| assigner.classes.classes[**id as usize].file == File::R;
    let ids: Vec<u32> = order.iter().filter(general).copied().collect();
    let least = peak(assigner.classes);
    let mut used = top(assigner.classes);
    for way in WAYS {
        if used <= least {
            return;
        }
        let old: Vec<Option<i32>> = ids.iter().map(|id| assigner.release(*id)).collect();
        if try_way(assigner, &ids, way, used - 1) {
            used = top(assigner.classes);
            continue;
        }
        for id in &ids {
            assigner.release(*id);
        }
        for (id, base) in ids.iter().zip(old) {
            if let Some(base) = base {
                assigner.take(*id, base);
            }
        }
    }
}

/// Assigns the classes to registers below a limit; false, with some of them placed, if one finds
/// no place.
fn try_way(assigner: &mut Assigner, ids: &[u32], way: Way, limit: i32) -> bool {
    let key = |id: &u32| {
        let class = &assigner.classes.classes[*id as usize];
        let width = class.width();
        (if width >= way.wide { -width } else { 0 }, class.start(), -width, *id)
    };
    let mut order = ids.to_vec();
    order.sort_by_key(key);
    for id in order {
        let class = &assigner.classes.classes[id as usize];
        let taken = assigner.taken(class);
        let mut open = Assigner::bases(class, &taken);
        // The last column must be below the limit too.
        open = open.and(Mask::below(limit - class.width() + 1));
        let best = if way.fits && class.width() <= 2 && class.columns.len() as i32 == class.width() {
            fitting(class, open, taken.iter().fold(Mask::below(256), |all, mask| all.and(*mask)))
        } else {
            open.lowest()
        };
        let Some(base) = best else { return false };
        assigner.take(id, base);
    }
    true
}

/// The register whose neighbours, within its pair and then its quad, are taken as far as possible.
fn fitting(class: &Class, open: Mask, taken: Mask) -> Option<i32> {
    let width = class.width();
    let free = |n: i32| i32::from(!taken.contains(n));
    let gaps = |base: i32| {
        let pair = if width == 1 { free(base ^ 1) } else { 0 };
        let quad = (base & !3..(base & !3) + 4).map(free).sum::<i32>();
        (pair, quad, base)
    };
    open.iter().min_by_key(|base| gaps(*base))
}

/// One more than the highest general register in use.
fn top(classes: &Classes) -> i32 {
    let general = classes.classes.iter().filter(|class| class.file == File::R);
    let highest = general.filter_map(|class| Some(class.base? + class.columns.last()?.slot + 1));
    highest.max().unwrap_or(0)
}

/// Most general registers that live at once, and those among them that nobody may use.
fn peak(classes: &Classes) -> i32 {
    let mut events: Vec<(u32, i32)> = Vec::new();
    for class in classes.classes.iter().filter(|class| class.file == File::R) {
        for range in class.columns.iter().flat_map(|column| &column.ranges) {
            events.extend([(range.0, 1), (range.1, -1)]);
        }
    }
    events.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in events {
        now += change;
        most = most.max(now);
    }
    let barred = classes.barred.always[File::R as usize];
    (0..256).filter(|n| !barred.contains(*n)).nth(most as usize).map_or(256, |n| n)
}
