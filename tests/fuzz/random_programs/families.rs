//! Statements of the newer families in random programs: which of them a program may have.
//!
//! A statement stands where all threads of the block reach it together (`together`), or anywhere in
//! the kernel. It begins and ends with a barrier where it touches memory that threads share, writes
//! all that it reads, and leaves its results in registers of the program. Nothing in it depends on
//! an order that the ISA leaves open: what several threads change has one commutative operation.

use super::make::register;
use super::{boxes, bulk, clusters, counts, images, maps, multimem, tensor_memory, warp_groups};
use crate::random::Random;
use sassafras::tables::targets::Variant;
use sassafras::tables::{Feature, Target};
use std::sync::OnceLock;

/// What a statement may rely on.
#[derive(Clone, Copy)]
pub struct Place {
    pub target: &'static Target,
    pub threads: usize,
    /// Blocks of the cluster; 0 without one.
    pub cluster: usize,
}

impl Place {
    /// Whether the target is this one of the base targets or a later one.
    pub fn from(&self, sm: u32) -> bool {
        self.target.sm >= sm
    }

    /// Whether the target has the instructions of its own.
    pub fn own(&self) -> bool {
        self.target.variant == Variant::A
    }
}

/// A family of statements.
pub struct Family {
    pub name: &'static str,
    /// How often it is drawn where it fits, next to others: more often what fits few places.
    weight: usize,
    fits: fn(&Place) -> bool,
    pub make: fn(&mut Random, &Place) -> String,
}

/// Statements that all threads of a block reach together.
pub const TOGETHER: [Family; 13] = [
    Family { name: "counts of barriers", weight: 1, fits: |p| p.from(80), make: counts::phases },
    Family { name: "copies that a barrier counts", weight: 1, fits: |p| p.from(80), make: counts::copies },
    Family { name: "bytes of barriers", weight: 1, fits: |p| p.from(90), make: counts::bytes },
    Family { name: "bulk copies", weight: 1, fits: |p| p.from(90), make: bulk::there_and_back },
    Family { name: "copies of boxes", weight: 1, fits: |p| p.from(90) && p.cluster == 0, make: boxes::boxes },
    Family { name: "maps of tensors", weight: 1, fits: maps::fits, make: maps::made },
    Family { name: "boxes for several blocks", weight: 1, fits: boxes::are_shared_out, make: boxes::shared_out },
    Family { name: "clusters", weight: 1, fits: |p| p.cluster > 1, make: clusters::statement },
    Family { name: "products of warp groups", weight: 3, fits: warp_groups::fits, make: warp_groups::product },
    Family { name: "tensor memory", weight: 2, fits: tensor_memory::fits, make: tensor_memory::statement },
    Family {
        name: "products of tensor memory",
        weight: 10,
        fits: tensor_memory::multiplies,
        make: tensor_memory::products,
    },
    Family { name: "registers of warps", weight: 1, fits: warp_groups::changes, make: warp_groups::registers },
    Family { name: "memory of several devices", weight: 1, fits: |p| p.from(90), make: multimem::statement },
];

/// Statements of one thread.
pub const ALONE: [Family; 2] = [
    Family { name: "textures", weight: 1, fits: |_| true, make: images::read },
    Family { name: "surfaces", weight: 1, fits: |_| true, make: images::surface },
];

/// A random statement of a family that the target has; `None` if it has none.
/// `SASSAFRAS_CASE` is a part of the names of the families, all of them by default.
pub fn one(random: &mut Random, place: &Place, families: &[Family]) -> Option<String> {
    static ONLY: OnceLock<String> = OnceLock::new();
    let only = ONLY.get_or_init(|| std::env::var("SASSAFRAS_CASE").unwrap_or_default());
    let asked = |family: &&Family| (family.fits)(place) && family.name.contains(only.as_str());
    let all: Vec<&Family> = families.iter().filter(asked).collect();
    let each = all.iter().flat_map(|family| std::iter::repeat_n(*family, family.weight)).collect::<Vec<_>>();
    let family = each.get(random.below(each.len()))?;
    Some((family.make)(random, place))
}

/// The registers of a statement, which opens a scope.
pub const OPEN: &str = "{ .reg .b32 TA, TB, TC, TD, TN, TR, TW<8>; .reg .b64 TG, TH, TI, TM, TS; .reg .pred TP, TQ;\n";

/// Adds a 32-bit value to a register of the program.
pub fn taken(random: &mut Random, value: &str) -> String {
    let r = register(random, 'r');
    match random.below(3) {
        0 => format!("add.u32 {r}, {r}, {value}; "),
        1 => format!("xor.b32 {r}, {r}, {value}; "),
        _ => format!("mad.lo.u32 {r}, {r}, 3, {value}; "),
    }
}

/// Words of the program in `TW0` and up.
pub fn words(random: &mut Random, count: usize) -> String {
    (0..count).map(|i| format!("mov.b32 TW{i}, {}; ", register(random, 'r'))).collect()
}

/// Sets `TP` in one thread of the block.
pub fn leader(random: &mut Random, place: &Place) -> String {
    match random.below(3) {
        0 if place.target.has(Feature::BarrierUnit) => {
            "elect.sync _|TQ, 0xffffffff; setp.lt.and.u32 TP, t, 32, TQ; ".to_string()
        }
        1 => "setp.eq.u32 TP, t, 0; ".to_string(),
        _ => format!("setp.eq.u32 TP, t, {}; ", random.below(place.threads)),
    }
}

/// A barrier of the block.
pub fn meet(random: &mut Random) -> &'static str {
    ["bar.sync 0;\n", "barrier.sync 0;\n", "barrier.cta.sync.aligned 0;\n", "bar.cta.sync 0;\n"][random.below(4)]
}

/// The address of another thread's words in the tile, `bytes` each, in `TC`; the thread's own in
/// `TB`, and the tile in `TA`.
pub fn slots(random: &mut Random, place: &Place, bytes: usize) -> String {
    let (by, threads) = (1 + random.below(place.threads - 1), place.threads);
    format!(
        "mov.u32 TA, tile; mad.lo.u32 TB, t, {bytes}, TA; add.u32 TC, t, {by}; and.b32 TC, TC, {}; \
         mad.lo.u32 TC, TC, {bytes}, TA;\n",
        threads - 1
    )
}

/// The thread's line of the heap, 128 bytes, in `TG`, and the block's part of the heap in `TH`.
pub fn heap(place: &Place) -> String {
    let of_block = match place.cluster {
        0 => String::new(),
        _ => format!("mov.u32 TR, %ctaid.x; mul.wide.u32 TM, TR, {}; add.u64 TH, TH, TM; ", 128 * place.threads),
    };
    format!("ld.param.u64 TH, [heap]; {of_block}mul.wide.u32 TG, t, 128; add.u64 TG, TG, TH;\n")
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Case, TARGETS, Way, input, judged};
    use super::super::tree::{Program, Statement};
    use super::*;
    use sassafras::compile::Options;

    /// Shapes of launches that programs have: threads, and blocks of a cluster.
    const SHAPES: [(usize, usize); 7] = [(32, 0), (64, 0), (128, 0), (32, 2), (32, 4), (64, 2), (128, 2)];

    /// Every family has a target, and statements of it alone compute the same everywhere.
    /// `SASSAFRAS_PROGRAMS` is the number of statements of each shape and target, one by default.
    #[test]
    fn statements_of_families_compute_the_same() {
        let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
        let (each, first) = (number("SASSAFRAS_PROGRAMS").unwrap_or(1), number("SASSAFRAS_SEED").unwrap_or(1));
        let only = std::env::var("SASSAFRAS_CASE").unwrap_or_default();
        let mut targets: Vec<&str> = TARGETS.to_vec();
        targets.dedup();
        let mut wrong = Vec::new();
        for family in TOGETHER.iter().chain(&ALONE).filter(|family| family.name.contains(&only)) {
            let mut made = 0;
            for (n, target) in targets.iter().enumerate() {
                for (threads, cluster) in SHAPES {
                    let place = Place { target: Target::by_name(target).unwrap(), threads, cluster };
                    if !(family.fits)(&place) || cluster > 0 && !place.from(90) {
                        continue;
                    }
                    for seed in first..first + each {
                        made += 1;
                        let seed = seed * 1000 + (10 * n + threads / 32 + cluster) as u64;
                        let text = (family.make)(&mut Random::new(seed), &place);
                        let body = vec![Statement::Plain(text)];
                        let program = Program { body, threads, cluster, lean: true, ..Program::default() };
                        let plain = Options { fmad: false, verify_ir: true, ..Options::new(target) };
                        let opt_level = if seed.is_multiple_of(3) { 0 } else { 3 };
                        let options = Options { opt_level, ..plain };
                        let way = Way { options, jitter: Some(seed).filter(|seed| seed & 1 == 1), checked: true };
                        let case = Case { target, ways: vec![way] };
                        let bytes = input(seed, program.bytes());
                        if let Err((_, said)) = judged(&program, &case, &bytes) {
                            let name = family.name;
                            wrong.push(format!(
                                "{name}, {target}, {threads} threads, cluster {cluster}, seed {seed}: {said}"
                            ));
                            super::super::keep(seed, &program.text(target, false), &bytes, &program);
                            if wrong.len() == 1 || std::env::var_os("SASSAFRAS_SHOW").is_some() {
                                println!("{}\n{}", wrong.last().unwrap(), program.text(target, false));
                            }
                        }
                    }
                }
            }
            println!("{}: {made} statements", family.name);
            assert!(made > 0, "{}: no target has it", family.name);
        }
        assert!(wrong.is_empty(), "{} statements differ:\n{}", wrong.len(), wrong.join("\n"));
    }
}
