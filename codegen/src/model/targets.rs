//! Resolved targets, generations and features.

use crate::report::Report;
use crate::rows::targets::{FeatureRow, GenerationRow, TargetRow};
use crate::source::{Row, Sources};

/// The SM configurations and their features.
pub struct Targets {
    pub targets: Vec<Row<TargetRow>>,
    pub generations: Vec<Row<GenerationRow>>,
    pub features: Vec<Row<FeatureRow>>,
    /// For each target (by index), which features (by index) it has.
    pub has: Vec<Vec<bool>>,
}

impl Targets {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, report: &mut Report) -> Targets {
        let targets = in_columns(sources.rows("targets.ron", report));
        let generations = sources.rows("generations.ron", report);
        let features: Vec<Row<FeatureRow>> = sources.rows("features.ron", report);
        let has = targets.iter().map(|t| features.iter().map(|f| holds(&targets, t, &f.on)).collect()).collect();
        Targets { targets, generations, features, has }
    }

    /// Columns of the targets that satisfy an `on` expression, one bit each.
    pub fn columns(&self, on: &str) -> u128 {
        let who = self.targets.iter().filter(|t| t.col < 128 && holds(&self.targets, t, on));
        who.fold(0, |mask, t| mask | 1 << t.col)
    }

    /// Index of a generation by name.
    pub fn generation(&self, name: &str) -> Option<usize> {
        self.generations.iter().position(|g| g.name == name)
    }

    /// A target's parents, nearest first.
    pub fn ancestors(&self, target: &TargetRow) -> impl Iterator<Item = &Row<TargetRow>> {
        ancestors(&self.targets, target).into_iter()
    }

    /// Targets whose encoder is implemented, in table order.
    pub fn built(&self) -> impl Iterator<Item = (usize, &Row<TargetRow>)> {
        self.targets.iter().enumerate().filter(|(_, t)| t.generation.is_some())
    }
}

/// The rows in the order of their columns, without reserved ones whose column another row takes.
fn in_columns(mut rows: Vec<Row<TargetRow>>) -> Vec<Row<TargetRow>> {
    let taken: Vec<u32> = rows.iter().filter(|r| r.kind != "reserved").map(|r| r.col).collect();
    rows.retain(|r| r.kind != "reserved" || !taken.contains(&r.col));
    rows.sort_by_key(|r| r.col);
    rows
}

/// One term of an `on` expression.
#[derive(Debug, PartialEq)]
pub enum Term<'a> {
    Named { name: &'a str, not: bool },
    Range { from: u32, to: Option<u32>, not: bool },
}

/// Splits an `on` expression. The error is a term that does not parse.
pub fn terms(on: &str) -> Result<Vec<Term<'_>>, &str> {
    on.split_whitespace()
        .map(|word| {
            let (not, body) = word.strip_prefix('-').map_or((false, word), |rest| (true, rest));
            match body.split_once("..") {
                None => Ok(Term::Named { name: body, not }),
                Some((from, to)) => {
                    let number = |s: &str| s.strip_prefix("sm_").and_then(|n| n.parse().ok());
                    let from = number(from).ok_or(word)?;
                    let to = if to.is_empty() { None } else { Some(number(to).ok_or(word)?) };
                    Ok(Term::Range { from, to, not })
                }
            }
        })
        .collect()
}

/// A target's parents, nearest first. A cycle among the parents ends the list.
fn ancestors<'a>(targets: &'a [Row<TargetRow>], target: &TargetRow) -> Vec<&'a Row<TargetRow>> {
    let parents = |row: &TargetRow| -> Vec<&'a Row<TargetRow>> {
        row.parents().filter_map(|name| targets.iter().find(|t| t.name == name)).collect()
    };
    let (mut found, mut next) = (Vec::<&Row<TargetRow>>::new(), parents(target));
    while !next.is_empty() {
        next.retain(|row| row.name != target.name && !found.iter().any(|f| f.name == row.name));
        found.extend(&next);
        next = next.into_iter().flat_map(|row| parents(row)).collect();
    }
    found
}

/// Whether a target satisfies an `on` expression: the last matching term decides.
fn holds(targets: &[Row<TargetRow>], target: &TargetRow, on: &str) -> bool {
    if target.kind != "real" {
        return false;
    }
    let mut names = vec![target.name.as_str()];
    names.extend(ancestors(targets, target).iter().map(|t| t.name.as_str()));
    let mut holds = false;
    for term in terms(on).unwrap_or_default() {
        match term {
            Term::Named { name, not } if names.contains(&name) => holds = !not,
            Term::Range { from, to, not } if target.sm >= from && to.is_none_or(|t| target.sm <= t) => holds = !not,
            _ => {}
        }
    }
    holds
}
