//! Targets, generations and features, resolved.

use crate::report::Report;
use crate::rows::targets::{FeatureRow, GenerationRow, TargetRow};
use crate::source::{Row, Sources};

/// The SM configurations and what they can do.
pub struct Targets {
    pub targets: Vec<Row<TargetRow>>,
    pub generations: Vec<Row<GenerationRow>>,
    pub features: Vec<Row<FeatureRow>>,
    /// For each target (by position) the features it has (by position).
    pub has: Vec<Vec<bool>>,
}

impl Targets {
    pub fn load(sources: &mut Sources, report: &mut Report) -> Targets {
        let targets: Vec<Row<TargetRow>> = sources.rows("targets.ron", report);
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

    /// Position of a generation by name.
    pub fn generation(&self, name: &str) -> Option<usize> {
        self.generations.iter().position(|g| g.name == name)
    }

    /// A target's parents, nearest first.
    pub fn ancestors(&self, target: &TargetRow) -> impl Iterator<Item = &Row<TargetRow>> {
        ancestors(&self.targets, target).into_iter()
    }

    /// Targets whose encoder is built, in table order.
    pub fn built(&self) -> impl Iterator<Item = (usize, &Row<TargetRow>)> {
        self.targets.iter().enumerate().filter(|(_, t)| t.generation.is_some())
    }
}

/// One term of an `on` expression.
#[derive(Debug, PartialEq)]
pub enum Term<'a> {
    Named { name: &'a str, not: bool },
    Range { from: u32, to: Option<u32>, not: bool },
}

/// Splits an `on` expression; an unreadable term comes back as the error.
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

/// A target's parents, nearest first. A loop among the parents ends the list.
fn ancestors<'a>(targets: &'a [Row<TargetRow>], target: &TargetRow) -> Vec<&'a Row<TargetRow>> {
    let mut found: Vec<&Row<TargetRow>> = Vec::new();
    let mut parent = target.parent.as_deref();
    while let Some(row) = parent.and_then(|name| targets.iter().find(|t| t.name == name)) {
        if found.iter().any(|f| f.name == row.name) || row.name == target.name {
            break;
        }
        found.push(row);
        parent = row.parent.as_deref();
    }
    found
}

/// Whether a target satisfies an `on` expression: the last term that speaks of it decides.
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
