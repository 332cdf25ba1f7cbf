//! Gathers the smallest distances that ptxas keeps, from any folder of its cubins, into a summary.
//!
//! `SASSAFRAS_GATHER=FOLDER cargo test --test sass gathered` reads every `.cubin` of the folder
//! and merges the result into tests/oracle/least.txt: for each model, kind of dependence, register
//! file and pair of latency classes, the smallest distance, its number of occurrences, and the
//! number of samples. It prints every pair of opcodes that violates the tables, with an example.
//! Without the variable, only the summary is compared with the tables, so that no row requires more
//! than ptxas was observed to keep. Distances of ptxas that hardware is not known to allow are
//! excused in tests/oracle/hazards.txt.

use super::distances::between;
use super::{explained, fits, root};
use sassafras::cubin;
use sassafras::sass::hazards::{Analysis, target_of};
use sassafras::tables::Target;
use sassafras::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// For a pair of classes: the smallest distance, samples that have it, all samples.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Least {
    least: u8,
    at_least: u64,
    samples: u64,
}

impl Least {
    fn join(&mut self, other: Least) {
        let both = [*self, other];
        self.least = self.least.min(other.least);
        self.at_least = both.iter().filter(|l| l.least == self.least).map(|l| l.at_least).sum();
        self.samples += other.samples;
    }
}

/// One target of each latency model.
const ONE_OF_EACH: [&str; 7] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120"];

type Summary = BTreeMap<String, Least>;

fn path() -> PathBuf {
    root().join("tests/oracle/least.txt")
}

const HEAD: &str = "\
# The smallest distances seen in ptxas's cubins (tests/sass/hazards/gather.rs): `MODEL KIND FILE PRODUCER CONSUMER LEAST AT SAMPLES`,
# the latency classes of both, the cycles, how many samples have just so many, and all of them.
";

fn recorded() -> Summary {
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [key @ .., least, at_least, samples] = &words[..] else { panic!("no summary: {line}") };
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let least = Least { least: number(least) as u8, at_least: number(at_least), samples: number(samples) };
        (key.join(" "), least)
    };
    text.lines().filter(|l| !l.starts_with('#')).map(line).collect()
}

/// What the tables require for a pair of classes; `None` if it needs a scoreboard.
fn asked(key: &str) -> Option<u8> {
    let words: Vec<&str> = key.split(' ').collect();
    let [model, kind, file, from, to] = words[..] else { panic!("no pair: {key}") };
    let mut models = ONE_OF_EACH.into_iter().filter_map(|name| Latency::demanded(Target::by_name(name)?));
    let latency = models.find(|latency| latency.name == model).expect("a model");
    let class = |name: &str| *LatencyClass::ALL.iter().find(|c| c.name() == name).expect("a class");
    let files = [RegFile::R, RegFile::UR, RegFile::P, RegFile::UP, RegFile::B];
    let file = files.into_iter().find(|f| format!("{f:?}") == file).expect("a register file");
    let needed = match kind {
        "raw" => latency.read_after_write(file, class(from), class(to)),
        "waw" => latency.write_after_write(file, class(from), class(to)),
        _ => latency.write_after_read(file, class(from), class(to)),
    };
    if let Needed::Cycles(n) = needed { Some(n) } else { None }
}

/// The pairs of opcodes that violate the tables, with the number of samples and an example of each.
type Forbidden = BTreeMap<(String, u8), (u64, String)>;

fn gather(folder: &str, found: &mut Summary, forbidden: &mut Forbidden) {
    let mut cubins: Vec<PathBuf> = std::fs::read_dir(folder).expect("a folder").map(|e| e.unwrap().path()).collect();
    cubins.retain(|p| p.extension().is_some_and(|e| e == "cubin"));
    cubins.sort();
    for path in cubins {
        let Ok(cubin) = std::fs::read(&path).map_err(drop).and_then(|b| cubin::read(&b).map_err(drop)) else {
            continue;
        };
        let Some((target, latency)) = target_of(&cubin).ok().and_then(|t| Some((t, Latency::demanded(t)?))) else {
            continue;
        };
        for function in &cubin.functions {
            let analysis = Analysis::new(target, function).expect("a target with a decoder");
            analysis.dependences(|d| {
                let (Some(first), Some(second)) = (analysis.inst(d.first), analysis.inst(d.second)) else { return };
                let Needed::Cycles(asked) = d.needed else { return };
                if d.announced {
                    return;
                }
                let between = between(latency, first, second, &d);
                if d.age < asked {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    let text =
                        || format!("of {asked}, {name} {}+{:#x} .. +{:#x}", function.name, d.first * 16, d.second * 16);
                    forbidden.entry((between.triple, d.age)).or_insert_with(|| (0, text())).0 += 1;
                }
                let one = Least { least: d.age, at_least: 1, samples: 1 };
                found.entry(between.class).and_modify(|least| least.join(one)).or_insert(one);
            });
        }
    }
}

#[test]
fn gathered_distances_are_allowed() {
    let mut all = recorded();
    if let Ok(folder) = std::env::var("SASSAFRAS_GATHER") {
        let (mut found, mut forbidden) = (Summary::new(), Forbidden::new());
        gather(&folder, &mut found, &mut forbidden);
        for ((triple, age), (n, text)) in &forbidden {
            println!("{triple}: {age} {text}, {n} samples");
        }
        for (key, least) in found {
            all.entry(key).and_modify(|old| old.join(least)).or_insert(least);
        }
        let line = |(key, l): (&String, &Least)| format!("{key} {} {} {}\n", l.least, l.at_least, l.samples);
        let text = HEAD.to_string() + &all.iter().map(line).collect::<String>();
        std::fs::write(path(), text).expect("the summary");
    }
    assert!(!all.is_empty(), "no summary");
    let lines = explained();
    let excused = |key: &str| lines.iter().any(|l| fits(&l.0, &format!("{key} cycles")));
    let wrong: Vec<String> = all
        .iter()
        .filter_map(|(key, seen)| Some((key, seen, asked(key)?)))
        .filter(|(key, seen, asked)| seen.least < *asked && !excused(key))
        .map(|(key, seen, asked)| {
            format!("{key}: {} of {asked}, {} of {} samples", seen.least, seen.at_least, seen.samples)
        })
        .collect();
    assert!(wrong.is_empty(), "{} rows that ptxas contradicts:\n{}", wrong.len(), wrong.join("\n"));
}
