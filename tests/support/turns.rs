//! Which targets a judge takes for which source.
//!
//! The targets of a group have one generation and encoding, and differ in little else. A judge that
//! walks over all sources takes each on one target of each group, in turn: every target gets many
//! sources, and every source all groups. The turn of a source is that of its name, so that judges
//! which take the same files ask for the same cubins, and a new file leaves the others where they
//! were. `SASSAFRAS_ORACLE=all` takes all targets, `SASSAFRAS_SM` those that it names.

use std::collections::BTreeMap;
use std::path::Path;

/// The groups, with targets as in `90`.
const GROUPS: [&[&str]; 7] =
    [&["75"], &["80"], &["86", "89"], &["90"], &["100", "103", "110"], &["120", "121"], &["107"]];

/// Every target of the groups.
pub fn targets() -> impl Iterator<Item = &'static str> {
    GROUPS.into_iter().flatten().copied()
}

/// Whether a run takes every combination.
pub fn all() -> bool {
    std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all")
}

/// The turn of a file.
pub fn turn(path: &Path) -> usize {
    let name = path.file_stem().unwrap_or_default().as_encoded_bytes();
    name.iter().fold(0usize, |turn, byte| turn.wrapping_mul(31).wrapping_add(usize::from(*byte)))
}

/// The targets that a file takes, of those that `fits` says it has.
pub fn of(path: &Path, fits: impl Fn(&str) -> bool) -> Vec<&'static str> {
    taken(turn(path), fits, all() || std::env::var_os("SASSAFRAS_SM").is_some())
}

fn taken(turn: usize, fits: impl Fn(&str) -> bool, all: bool) -> Vec<&'static str> {
    let group = |group: &[&'static str]| {
        let own: Vec<&'static str> = group.iter().copied().filter(|sm| fits(sm)).collect();
        if all || own.is_empty() { own } else { vec![own[turn % own.len()]] }
    };
    GROUPS.into_iter().flat_map(group).collect()
}

/// Fails unless each target was taken by at least so many sources, where nothing narrows the run.
pub fn assert_covered<'a>(taken: impl IntoIterator<Item = &'a str>, least: usize) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    taken.into_iter().for_each(|sm| *counts.entry(sm).or_default() += 1);
    println!("sources of each target: {counts:?}");
    if ["SASSAFRAS_CASE", "SASSAFRAS_SM"].iter().all(|name| std::env::var_os(name).is_none()) {
        let few: Vec<&str> = targets().filter(|sm| counts.get(sm).is_none_or(|count| *count < least)).collect();
        assert!(few.is_empty(), "fewer than {least} sources for {few:?}: {counts:?}");
    }
}

#[test]
fn one_target_of_each_group_in_turn() {
    let everything = |_: &str| true;
    assert_eq!(taken(0, everything, false), ["75", "80", "86", "90", "100", "120", "107"]);
    assert_eq!(taken(5, everything, false), ["75", "80", "89", "90", "110", "121", "107"]);
    assert_eq!(taken(4, |sm| !["75", "80", "86", "100"].contains(&sm), false), ["89", "90", "103", "120", "107"]);
    let some: std::collections::BTreeSet<&str> = (0..6).flat_map(|turn| taken(turn, everything, false)).collect();
    assert_eq!((some.len(), targets().count()), (11, 11));
    assert_eq!(taken(1, everything, true), targets().collect::<Vec<_>>());
}
