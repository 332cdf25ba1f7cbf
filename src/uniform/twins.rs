//! Values that are in both register files: moved out of the uniform one, or handed over to it.
//!
//! A move is worth it where it saves more of them, each by how often it is executed: what is
//! handed over to the uniform file of the value and of what is computed from it there, and what
//! goes round a loop there in which general registers would be spilled; or where much is computed
//! for the value in the uniform file ([`super::chains`]). A value that
//! is the same in all lanes but computed where lanes are apart is handed over where they are
//! together again; only readers behind that place can have it in a uniform register.

use super::taken::handed;
use crate::analysis::def_use::is_free;
use crate::analysis::divergence::Varying;
use crate::analysis::loops::Loops;
use crate::ori::cfg::{BlockSet, Cfg, Dominators};
use crate::ori::list_table::ListTable;
use crate::ori::{Block, File, Function, InstId, VReg, table};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::{Op, Prop};
use cranelift_entity::SecondaryMap;

/// Moves that keeping a value in the uniform file saves where it would be spilled in each turn of a
/// loop: a store and a load.
const SPILLED: f64 = 2.0;

/// How a value gets into the other file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Twin {
    /// Not at all.
    #[default]
    None,
    /// It is computed in the uniform file, and moved to the general one.
    Out,
    /// It is computed in the general file, and handed over to the uniform one.
    In,
}

/// What is known of blocks and lanes.
pub struct Places<'a> {
    pub cfg: &'a Cfg,
    pub loops: &'a Loops,
    pub dominators: &'a Dominators,
    pub lanes: &'a Varying,
    /// Blocks of loops with more values in general registers than the kernel may have.
    pub crowded: &'a BlockSet,
}

/// The values that are in both files.
pub struct Twins {
    of: SecondaryMap<VReg, Twin>,
    /// Blocks at whose start values are handed over that are computed where lanes are apart.
    places: SortedMap<VReg, Block>,
    /// Readers that such a value does not get to in the uniform file.
    before: SortedSet<(VReg, InstId)>,
    /// How often each block is executed, and the block of each instruction.
    frequency: SecondaryMap<Block, f64>,
    home: SecondaryMap<InstId, Block>,
    crowded: BlockSet,
    /// Whether anything is handed over at all.
    pub any: bool,
    /// Whether there is a crowded loop.
    pub crowds: bool,
    /// Whether a value was ever moved out.
    pub out: bool,
}

impl Twins {
    /// No value is in both files yet.
    pub fn new(function: &Function, places: &Places) -> Twins {
        let insts = || places.cfg.rpo.iter().flat_map(|block| &function[*block]);
        let mut new = Twins {
            of: table(function.regs().len()),
            places: SortedMap::new(),
            before: SortedSet::new(),
            frequency: SecondaryMap::new(),
            home: SecondaryMap::with_default(Block::from_u32(0)),
            crowded: places.crowded.clone(),
            crowds: !places.crowded.is_empty(),
            out: false,
            any: !places.crowded.is_empty() || insts().any(|inst| handed(function, *inst).is_some()),
        };
        for block in &places.cfg.rpo {
            new.frequency[*block] = 10f64.powi(places.loops.depth(*block).min(8) as i32);
            function[*block].iter().for_each(|inst| new.home[*inst] = *block);
        }
        new
    }

    /// How a value gets into the other file.
    pub fn of(&self, reg: VReg) -> Twin {
        self.of[reg]
    }

    /// Says how a value gets into the other file.
    pub fn set(&mut self, reg: VReg, twin: Twin) {
        self.out |= twin == Twin::Out;
        self.of[reg] = twin;
    }

    /// Whether a reader may have a value of the set in a uniform register.
    pub fn reaches(&self, reg: VReg, reader: InstId) -> bool {
        self.places.is_empty() || !self.before.contains(&(reg, reader))
    }

    /// Values that are handed over at the start of a block.
    pub fn at_start(&self, block: Block) -> Vec<VReg> {
        self.places.iter().filter(|of| *of.1 == block).map(|of| *of.0).collect()
    }

    /// Whether a value is handed over behind its definition.
    pub fn is_at_definition(&self, reg: VReg) -> bool {
        !self.places.contains_key(&reg)
    }

    /// The result of an instruction that is computed in the general file and can be handed over.
    pub fn import(
        &mut self,
        function: &Function,
        places: &Places,
        inst: InstId,
        readers: &ListTable<VReg, smallvec::SmallVec<[InstId; 4]>>,
    ) -> Option<VReg> {
        let data = &function[inst];
        let (mut result, mut count) = (None, 0);
        function.for_each_def(inst, |reg| (result, count) = (Some(reg), count + 1));
        // A guarded definition is whole with the value that it replaces.
        let whole = data.guard.is_null() || !function.olds(inst).is_empty();
        let plain = count == 1 && whole && !data.op.has(Prop::Pseudo) && data.op != Op::PHI;
        let reg = result.filter(|_| plain)?;
        let fits = function[reg].file == File::R && is_free(function, reg);
        if !fits || places.lanes.regs.contains(reg) {
            return None;
        }
        if places.lanes.interleaved.contains(self.home[inst]) {
            let place = self.together(places, self.home[inst], &readers[reg], function)?;
            let behind = |reader: InstId| {
                function[reader].op != Op::PHI && places.dominators.dominates(place, self.home[reader])
            };
            let before: Vec<InstId> = readers[reg].iter().copied().filter(|reader| !behind(*reader)).collect();
            self.before.extend(before.into_iter().map(|reader| (reg, reader)));
            self.places.insert(reg, place);
        }
        self.of[reg] = Twin::In;
        Some(reg)
    }

    /// The block behind a definition and before its readers where lanes are together, of those that
    /// are executed least the first.
    fn together(&self, places: &Places, home: Block, readers: &[InstId], function: &Function) -> Option<Block> {
        let apart = |block: &Block| places.lanes.interleaved.contains(*block);
        let blocks = readers.iter().filter(|reader| function[**reader].op != Op::PHI);
        let blocks = blocks.map(|reader| self.home[*reader]).filter(|block| !apart(block));
        let mut at = blocks.map(Some).reduce(|a, b| places.dominators.common(a?, b?))??;
        // Behind a loop, lanes may have the values of different iterations.
        let within = |block: Block| places.loops.innermost(home).is_none_or(|id| places.loops.contains(id, block));
        let mut best = None;
        while at != home {
            let rare = |best: Block| self.frequency[at] <= self.frequency[best];
            if !apart(&at) && within(at) && best.is_none_or(rare) {
                best = Some(at);
            }
            at = places.dominators.parent(at)?;
        }
        best
    }

    /// How often an instruction is executed.
    pub fn often(&self, inst: InstId) -> f64 {
        self.frequency[self.home[inst]]
    }

    /// How often a value is moved if it is.
    pub fn cost(&self, reg: VReg, home: Block) -> f64 {
        self.frequency[self.places.get(&reg).copied().unwrap_or(home)]
    }

    /// How often an instruction hands this value over to the uniform file, or, `within` the set,
    /// takes it round a loop where it would be spilled.
    pub fn gain(&self, function: &Function, reader: InstId, reg: VReg, within: bool) -> f64 {
        let home = self.home[reader];
        let hands = handed(function, reader) == Some(reg);
        let stays = within && function[reader].op == Op::PHI && self.crowded.contains(home);
        let moves = if stays { SPILLED } else { f64::from(u8::from(hands)) };
        if moves > 0.0 && self.reaches(reg, reader) { moves * self.frequency[home] } else { 0.0 }
    }
}
