//! Chooses predicates that live in several blocks for bits of words.
//!
//! A predicate may move that has one definition, without a guard, which dominates all readers, none
//! of them before it in its own block or behind the first terminator of a block. Where more live
//! than there are, the ones that are read least often for the crowded blocks they live in move.
//! Predicates of one block share words, since a word is begun behind the first definition in it;
//! one that would be alone is left to the allocator, which gives it a register.

use super::{ALL, LOCAL, Place, names_by_mask};
use crate::analysis::def_use::is_free;
use crate::analysis::loops::Loops;
use crate::ori::cfg::Dominators;
use crate::ori::hash::QuickMap;
use crate::ori::liveness::Liveness;
use crate::ori::{Block, File, Function, VReg, table};
use crate::sorted::SortedMap;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Bits of a shared word: setting them is a chain, one instruction waits for the other.
const SHARED_BITS: usize = 8;

/// A bit of a word.
#[derive(Clone, Copy)]
pub struct Bit {
    pub word: VReg,
    pub mask: u64,
    /// Whether its predicate is the first one of the word.
    pub first: bool,
}

/// The predicates that move, and the blocks that define or read them.
pub struct Shared {
    pub bits: QuickMap<VReg, Bit>,
    pub touched: SecondaryMap<Block, bool>,
}

/// What is known of a predicate.
#[derive(Clone, Default)]
struct Fact {
    /// Its only definition: the block and the place in it.
    home: Option<(Block, u32)>,
    /// Whether it must stay.
    stays: bool,
    /// How often it is defined and read.
    weight: f64,
    /// Crowded blocks at whose end it lives.
    span: u32,
}

/// Where a function's predicates live.
pub struct Lives<'a> {
    pub live: &'a Liveness,
    pub local: &'a SecondaryMap<VReg, Place>,
    pub loops: &'a Loops,
    pub dominators: &'a Dominators,
}

impl Shared {
    /// The choice for a function.
    pub fn choose(function: &mut Function, lives: &Lives) -> Shared {
        let mut chosen: SecondaryMap<VReg, bool> = table(function.regs().len());
        let mut facts = facts(function, lives);
        let crowded: Vec<Block> =
            function.layout().iter().copied().filter(|block| peak(function, *block, lives, &chosen).0 > ALL).collect();
        for reg in crowded.iter().flat_map(|block| &lives.live.live[*block]) {
            facts[*reg].span += 1;
        }
        for block in crowded {
            while let (most, at) = peak(function, block, lives, &chosen)
                && most > ALL
            {
                let price = |reg: &VReg| facts[*reg].weight / f64::from(facts[*reg].span.max(1));
                let movable = |reg: &VReg| !facts[*reg].stays && !chosen[*reg];
                let there = at_point(function, block, lives, &chosen, at).into_iter().filter(movable);
                let Some(reg) = there.min_by(|a, b| price(a).total_cmp(&price(b)).then(a.cmp(b))) else { break };
                chosen[reg] = true;
            }
        }
        Shared::words(function, &facts, &chosen)
    }

    /// Gives the chosen ones words, block by block.
    fn words(function: &mut Function, facts: &SecondaryMap<VReg, Fact>, chosen: &SecondaryMap<VReg, bool>) -> Shared {
        let mut homes: SortedMap<Block, Vec<(u32, VReg)>> = SortedMap::new();
        for (reg, _) in function.regs().iter().filter(|(reg, _)| chosen[*reg]) {
            if let Some((block, at)) = facts[reg].home {
                homes.entry(block).or_default().push((at, reg));
            }
        }
        let mut bits = QuickMap::default();
        for mut members in homes.into_values() {
            members.sort_unstable();
            for part in members.chunks(SHARED_BITS).filter(|part| part.len() > 1) {
                let word = function.new_reg(File::R);
                for (number, (_, reg)) in part.iter().enumerate() {
                    bits.insert(*reg, Bit { word, mask: 1 << number, first: number == 0 });
                }
            }
        }
        let mut touched = SecondaryMap::new();
        for block in function.layout() {
            for inst in &function[*block] {
                let mut note = |reg: VReg| touched[*block] |= bits.contains_key(&reg);
                function.for_each_use(*inst, &mut note);
                function.for_each_def(*inst, &mut note);
            }
        }
        Shared { bits, touched }
    }
}

/// The facts of all predicates.
fn facts(function: &Function, lives: &Lives) -> SecondaryMap<VReg, Fact> {
    let mut facts: SecondaryMap<VReg, Fact> = table(function.regs().len());
    let often = |block: Block| 10f64.powi(lives.loops.depth(block).min(8) as i32);
    for block in function.layout() {
        let (last, masked) = (function.first_terminator(*block), masked(function, *block));
        for (at, inst) in function[*block].iter().enumerate() {
            let whole = function[*inst].guard.is_null() && at < last && !masked;
            function.for_each_def(*inst, |reg| {
                let fact = &mut facts[reg];
                fact.stays |= fact.home.is_some() || !whole || function[reg].file != File::P || !is_free(function, reg);
                fact.home = Some((*block, at as u32));
                fact.weight += often(*block);
            });
        }
    }
    for block in function.layout() {
        let (last, masked) = (function.first_terminator(*block), masked(function, *block));
        for (at, inst) in function[*block].iter().enumerate() {
            function.for_each_use(*inst, |reg| {
                let fact = &mut facts[reg];
                let behind = fact.home.is_some_and(|(home, first)| {
                    if home == *block { (first as usize) < at } else { lives.dominators.dominates(home, *block) }
                });
                fact.stays |= !behind || at > last || masked;
                fact.weight += often(*block);
            });
        }
    }
    facts
}

/// Whether a block has instructions that touch predicates which they do not name.
fn masked(function: &Function, block: Block) -> bool {
    function[block].iter().any(|inst| names_by_mask(function, *inst))
}

/// Calls back with each point of a block from its end, the predicates of several blocks that live
/// there, and how many registers all that live there take.
fn walk(
    function: &Function,
    block: Block,
    lives: &Lives,
    chosen: &SecondaryMap<VReg, bool>,
    mut tell: impl FnMut(usize, &[VReg], usize),
) {
    let is_local = |reg: VReg| lives.local[reg] == Place::In(block);
    let (mut through, mut own): (Vec<VReg>, Vec<VReg>) = (Vec::new(), Vec::new());
    let counts = |reg: VReg| function[reg].file == File::P;
    through.extend(lives.live.live[block].iter().copied().filter(|reg| counts(*reg) && !chosen[*reg]));
    tell(function[block].len(), &through, through.len());
    for (at, inst) in function[block].iter().enumerate().rev() {
        let mut beside: SmallVec<[VReg; 4]> = SmallVec::new();
        function.for_each_def(*inst, |reg| {
            beside.extend((counts(reg) && chosen[reg]).then_some(reg));
            if function[*inst].guard.is_null() {
                through.retain(|other| *other != reg);
                own.retain(|other| *other != reg);
            }
        });
        let defined = beside.len();
        beside.clear();
        function.for_each_use(*inst, |reg| {
            let list = if is_local(reg) { &mut own } else { &mut through };
            if counts(reg) && chosen[reg] {
                beside.push(reg);
            } else if counts(reg) && !list.contains(&reg) {
                list.push(reg);
            }
        });
        beside.sort_unstable();
        beside.dedup();
        tell(at, &through, through.len() + own.len().min(LOCAL) + beside.len().max(defined));
    }
}

/// The most registers that predicates take in a block, and where.
fn peak(function: &Function, block: Block, lives: &Lives, chosen: &SecondaryMap<VReg, bool>) -> (usize, usize) {
    let mut most = (0, 0);
    walk(function, block, lives, chosen, |at, _, count| {
        if count > most.0 {
            most = (count, at);
        }
    });
    most
}

/// The predicates of several blocks that live at a point of a block.
fn at_point(
    function: &Function,
    block: Block,
    lives: &Lives,
    chosen: &SecondaryMap<VReg, bool>,
    point: usize,
) -> Vec<VReg> {
    let mut there = Vec::new();
    walk(function, block, lives, chosen, |at, through, _| {
        if at == point {
            there = through.to_vec();
        }
    });
    there
}
