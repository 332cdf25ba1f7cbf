//! The values that may go into the bank, with what each costs and saves.

use super::classes::RootClass;
use super::trees::{Trees, results};
use crate::analysis::loops::Loops;
use crate::ori::{Block, Function, InstId, VReg};
use crate::sorted::SortedMap;
use crate::tables::patches::Program;

/// Uses, counted with the trips of loops, from which on a word of the bank pays.
const LEAST_USES: u64 = 3;

/// Trips of a loop, and the deepest loops that count.
const TRIPS: u64 = 10;
const DEEPEST: u32 = 6;

/// A value that may go into the bank.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub block: Block,
    pub inst: InstId,
    /// The registers of the value, one or two.
    pub regs: Vec<VReg>,
    /// The program of each.
    pub programs: Vec<Program>,
    pub class: RootClass,
    /// What it saves: its uses, times the depth of its tree, for the room that it takes. Greater is
    /// better.
    pub score: u64,
}

impl Candidate {
    /// Bytes in the bank.
    pub fn bytes(&self) -> u32 {
        4 * self.regs.len() as u32
    }
}

/// The uses of a register by instructions that make no value of a tree.
#[derive(Clone, Copy, Default)]
struct Uses {
    count: u32,
    /// The depth of the deepest loop with one.
    depth: u32,
}

/// The candidates in the order of the code: roots that something outside of trees reads.
pub fn candidates(function: &Function, trees: &Trees, loops: &Loops) -> Vec<Candidate> {
    let mut uses: SortedMap<VReg, Uses> = SortedMap::new();
    for block in function.layout() {
        let depth = loops.depth(*block).min(DEEPEST);
        for inst in function[*block].iter().filter(|inst| !trees.insts.contains(inst)) {
            function.for_each_use(*inst, |reg| {
                if trees.of(reg).is_some() {
                    let known = uses.entry(reg).or_default();
                    *known = Uses { count: known.count + 1, depth: known.depth.max(depth) };
                }
            });
        }
    }
    let mut found = Vec::new();
    for block in function.layout() {
        let own = function[*block].iter().filter(|inst| trees.insts.contains(inst));
        found.extend(own.filter_map(|inst| candidate(function, trees, &uses, (*block, *inst))));
    }
    found
}

fn candidate(
    function: &Function,
    trees: &Trees,
    uses: &SortedMap<VReg, Uses>,
    (block, inst): (Block, InstId),
) -> Option<Candidate> {
    let class = trees.class(function, inst).filter(|class| class.is_extracted())?;
    let regs = results(function, inst);
    let values = regs.iter().map(|reg| trees.of(*reg)).collect::<Option<Vec<_>>>()?;
    let depth = values.iter().map(|tree| tree.depth).max()?;
    // What immediates alone make is folded elsewhere.
    let asks = values.iter().all(|tree| tree.depth > 1);
    let programs = values.iter().map(|tree| tree.program.clone()).collect();
    let own = regs.iter().filter_map(|reg| uses.get(reg));
    let static_uses = own.clone().map(|uses| uses.count).max()?;
    // Static uses times the trips of the deepest loop with one of them.
    let trips = TRIPS.pow(own.map(|uses| uses.depth).max()?);
    let dynamic_uses = u64::from(static_uses) * trips;
    // A word that takes twice the room must save twice as much.
    let score = dynamic_uses * u64::from(depth) * 2 / regs.len() as u64;
    let pays = asks && dynamic_uses >= LEAST_USES;
    pays.then_some(Candidate { block, inst, regs, programs, class, score })
}
