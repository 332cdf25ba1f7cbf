//! Resolved latencies: one model per group of targets, with a class for every operand of every
//! opcode and a distance for every pair of classes.
//!
//! The rows are those of `latency/*.ron`. If several rows match a cell, the most specific one
//! applies; two of the same rank are an error, and so is a cell without a row. In a model without
//! errors every cell has exactly one answer.

use super::memory::modifier;
use super::ori::Ori;
use super::targets::Targets;
use crate::report::{Report, TableError};
use crate::rows::latency::*;
use crate::source::{At, Row, Sources};

/// Register files that have distances.
pub const FILES: [&str; 5] = ["R", "UR", "P", "UP", "B"];
/// The distance value that stands for a scoreboard.
pub const SCOREBOARD: u8 = 255;

/// The kinds of dependence: read after write, write after write, write after read.
pub const KINDS: [&str; 3] = ["raw", "waw", "war"];

/// A part of an opcode with a class of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Special {
    pub op: usize,
    /// Required modifiers (kind and value), all of them.
    pub when: Vec<(usize, usize)>,
    /// Index of the role and the word in it; a word of `None` stands for all.
    pub part: Option<(usize, Option<u8>)>,
    pub class: usize,
}

/// One model.
pub struct LatencyModel {
    pub row: Row<ModelRow>,
    /// Indices of its targets.
    pub targets: Vec<usize>,
    /// Class by opcode.
    pub base: Vec<usize>,
    /// By opcode, the most specific first.
    pub specials: Vec<Special>,
    pub distances: Distances,
    /// Minimum stall by opcode.
    pub stalls: Vec<Stall>,
    /// Distances and stalls that the simulator and the checker require: never more than those
    /// above.
    pub demanded: (Distances, Vec<Stall>),
    /// Distances between instructions that name no register in common, at most [`MOST_PAIRS`].
    pub pairs: Vec<Pair>,
}

/// Most pairs of a model: users have one bit for each.
const MOST_PAIRS: usize = 8;

/// One side of a pair: an opcode, and a role that it must have or must not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub op: usize,
    pub role: Option<(String, bool)>,
}

/// A distance between two instructions: what the schedule keeps, and what is required.
#[derive(Clone, Debug)]
pub struct Pair {
    pub first: Side,
    pub second: Side,
    pub cycles: Both,
}

/// By file, first class and second class.
type Cells<T> = Vec<Vec<Vec<T>>>;

/// By kind, file, first class and second class: cycles, or [`SCOREBOARD`].
pub type Distances = Vec<Cells<u8>>;

/// The cycles that the schedule keeps, and those that the simulator and the checker require.
pub type Both = [u8; 2];

/// Minimum stall without a guard, and under one.
pub type Stall = [u8; 2];

/// All models.
pub struct Latency {
    pub classes: Vec<Row<ClassRow>>,
    pub models: Vec<LatencyModel>,
    pub evidence: Vec<(String, At)>,
}

/// The rows and what is needed to resolve them.
struct Tables<'a> {
    ori: &'a Ori,
    names: Vec<String>,
    classes: Vec<String>,
    members: Vec<Row<MemberRow>>,
    distances: Vec<Vec<Row<DistanceRow>>>,
    /// What each row of `distances` says.
    lines: Vec<Vec<Line>>,
    stalls: Vec<Row<StallRow>>,
    pairs: Vec<Row<PairRow>>,
}

/// What a row of distances says, by class: its words are looked at once, not for every cell of
/// every model.
struct Line {
    /// Whether it is about a class as the first.
    from: Vec<bool>,
    /// Rank and cycles for a class as the second.
    to: Vec<Option<(u32, Both)>>,
}

impl Latency {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, targets: &Targets, ori: &Ori, report: &mut Report) -> Latency {
        let rows: Vec<Row<ModelRow>> = sources.rows("latency/models.ron", report);
        let classes: Vec<Row<ClassRow>> = sources.rows("latency/classes.ron", report);
        let members: Vec<Row<MemberRow>> = sources.rows("latency/members.ron", report);
        let distances = KINDS.map(|kind| sources.rows::<DistanceRow>(&format!("latency/{kind}.ron"), report));
        let stalls: Vec<Row<StallRow>> = sources.rows("latency/stalls.ron", report);
        let pairs: Vec<Row<PairRow>> = sources.rows("latency/pairs.ron", report);
        let mut evidence: Vec<(String, At)> = rows.iter().map(|r| (r.src.clone(), r.at)).collect();
        evidence.extend(classes.iter().map(|r| (r.src.clone(), r.at)));
        evidence.extend(members.iter().map(|r| (r.src.clone(), r.at)));
        evidence.extend(distances.iter().flatten().map(|r| (r.src.clone(), r.at)));
        evidence.extend(stalls.iter().map(|r| (r.src.clone(), r.at)));
        evidence.extend(pairs.iter().map(|r| (r.src.clone(), r.at)));
        for row in &classes {
            one_of(&row.result, &["fixed", "scoreboard"], "result", row.at, report);
            one_of(&row.sources, &["early", "late", "late_all"], "sources", row.at, report);
        }
        let names: Vec<String> = classes.iter().map(|c| c.name.clone()).collect();
        let lines = distances.iter().map(|rows| rows.iter().map(|row| Line::of(row, &names)).collect()).collect();
        let tables = Tables {
            ori,
            names: rows.iter().map(|r| r.name.clone()).collect(),
            classes: names,
            members,
            distances: distances.into(),
            lines,
            stalls,
            pairs,
        };
        tables.names_resolve(report);
        tables.pairs_resolve(report);
        let sound = report.is_empty();
        let models = rows.into_iter().map(|row| tables.model(row, targets, sound, report)).collect();
        let latency = Latency { classes, models, evidence };
        if sound {
            latency.each_target_once(targets, report);
        }
        latency
    }

    /// Every target with an encoder has exactly one model.
    fn each_target_once(&self, targets: &Targets, report: &mut Report) {
        for (position, target) in targets.built() {
            let of: Vec<&LatencyModel> = self.models.iter().filter(|m| m.targets.contains(&position)).collect();
            if of.len() != 1 {
                let mut rows = vec![(target.at, format!("{} models", of.len()))];
                rows.extend(of.iter().map(|m| (m.row.at, m.row.name.clone())));
                report.rows("latency", format!("{} has not exactly one latency model", target.name), rows);
            }
        }
    }
}

fn one_of(value: &str, set: &[&str], column: &str, at: At, report: &mut Report) {
    if !set.contains(&value) {
        report.at("latency", format!("{column} `{value}` is not one of {}", set.join(", ")), at);
    }
}

/// Whether a column's word list contains a word; `*` stands for every word.
fn lists(column: &str, word: &str) -> bool {
    column.split_whitespace().any(|w| w == word || w == "*")
}

/// A row with the words of its column of opcodes.
type Worded<'a, R> = (&'a Row<R>, Vec<&'a str>);

/// The rows that speak of a model, with the words of the column that names opcodes: it is asked for
/// every opcode, so it is split once.
fn on_model<'a, R>(rows: &'a [Row<R>], model: &str, of: impl Fn(&R) -> (&str, &str)) -> Vec<Worded<'a, R>> {
    let on = rows.iter().filter(|row| lists(of(row).0, model));
    on.map(|row| (row, of(row).1.split_whitespace().collect())).collect()
}

/// Whether an opcode is one of the words, or `*` is.
fn names(words: &[&str], op: &str) -> bool {
    words.contains(&op) || words.contains(&"*")
}

/// The rows of highest rank, with the rank.
fn best<T>(candidates: impl Iterator<Item = (u32, At, T)>) -> Vec<(At, T)> {
    let mut found: Vec<(At, T)> = Vec::new();
    let mut rank = 0;
    for (r, at, value) in candidates {
        if r > rank {
            found.clear();
        }
        if r >= rank {
            rank = r;
            found.push((at, value));
        }
    }
    found
}

impl Tables<'_> {
    fn class(&self, name: &str) -> Option<usize> {
        self.classes.iter().position(|c| c == name)
    }

    /// Checks that every name in every row exists.
    fn names_resolve(&self, report: &mut Report) {
        let on = |column: &str, at: At, report: &mut Report| {
            for word in column.split_whitespace().filter(|w| *w != "*" && !self.names.iter().any(|n| n == w)) {
                report.at("names", format!("no latency model is called `{word}`"), at);
            }
        };
        let ops = |column: &str, at: At, report: &mut Report| {
            for word in column.split_whitespace().filter(|w| *w != "*" && self.ori.op(w).is_none()) {
                report.at("names", format!("no opcode is called `{word}`"), at);
            }
        };
        let class = |word: &str, at: At, report: &mut Report| {
            if word != "*" && self.class(word).is_none() {
                report.at("names", format!("no latency class is called `{word}`"), at);
            }
        };
        for row in &self.members {
            on(&row.on, row.at, report);
            ops(&row.ops, row.at, report);
            class(&row.class, row.at, report);
            for word in row.when.split_whitespace().filter(|word| modifier(self.ori, word).is_none()) {
                report.at("names", format!("`{word}` is not KIND=VALUE of known names"), row.at);
            }
        }
        for row in self.distances.iter().flatten() {
            on(&row.on, row.at, report);
            row.from.split_whitespace().for_each(|word| class(word, row.at, report));
            if row.file != "*" {
                row.file.split_whitespace().for_each(|file| one_of(file, &FILES, "file", row.at, report));
            }
            for word in row.to.split_whitespace().chain(row.demanded.split_whitespace()) {
                match word.split_once(':') {
                    Some((name, cycles)) if cycles_of(cycles).is_some() => class(name, row.at, report),
                    _ => report.at("latency", format!("`{word}` is not CLASS:CYCLES or CLASS:sb"), row.at),
                }
            }
            for (name, cycles) in row.demanded.split_whitespace().filter_map(|word| word.split_once(':')) {
                let kept = column_of(&row.to, name).map(|(_, kept)| kept);
                if cycles_of(cycles) > kept {
                    report.at("latency", format!("`{name}:{cycles}` demands more than the row keeps"), row.at);
                }
            }
        }
        for row in &self.stalls {
            on(&row.on, row.at, report);
            ops(&row.ops, row.at, report);
            if row.guarded && row.demanded.is_none() {
                report.at("latency", "`guarded` says of what `demanded` holds, and there is none", row.at);
            }
            if let Some(demanded) = row.demanded.filter(|demanded| *demanded > row.least) {
                let message = format!("`demanded: {demanded}` is more than the {} that the row keeps", row.least);
                report.at("latency", message, row.at);
            }
        }
    }

    /// Checks the pairs: cycles, and sides that exist.
    fn pairs_resolve(&self, report: &mut Report) {
        for row in &self.pairs {
            for word in row.on.split_whitespace().filter(|w| *w != "*" && !self.names.iter().any(|n| n == w)) {
                report.at("names", format!("no latency model is called `{word}`"), row.at);
            }
            for text in [&row.first, &row.second] {
                if let Err(message) = self.side(text) {
                    report.at("names", message, row.at);
                }
            }
            if row.least == 0 {
                report.at("latency", "a distance of no cycles says nothing", row.at);
            }
            if let Some(demanded) = row.demanded.filter(|demanded| *demanded > row.least) {
                let message = format!("`demanded: {demanded}` is more than the {} that the row keeps", row.least);
                report.at("latency", message, row.at);
            }
        }
    }

    /// Parses `OPCODE`, `OPCODE role` or `OPCODE !role`.
    fn side(&self, text: &str) -> Result<Side, String> {
        let (name, role) = text.split_once(' ').map_or((text, None), |(name, role)| (name, Some(role)));
        let op = self.ori.ops.iter().position(|op| op.row.op == name);
        let op = op.ok_or_else(|| format!("no opcode is called `{name}`"))?;
        let Some(role) = role else { return Ok(Side { op, role: None }) };
        let (name, has) = role.strip_prefix('!').map_or((role, true), |name| (name, false));
        match self.ori.ops[op].roles.iter().any(|known| known.name == name) {
            true => Ok(Side { op, role: Some((name.to_string(), has)) }),
            false => Err(format!("{} has no role `{name}`", self.ori.ops[op].row.op)),
        }
    }

    /// The pairs of a model; two rows of one pair are an error, and so are too many.
    fn pairs(&self, model: &Row<ModelRow>, report: &mut Report) -> Vec<Pair> {
        let mut found: Vec<(Pair, At)> = Vec::new();
        for row in self.pairs.iter().filter(|row| lists(&row.on, &model.name)) {
            let (Ok(first), Ok(second)) = (self.side(&row.first), self.side(&row.second)) else { continue };
            let pair = Pair { first, second, cycles: [row.least, row.demanded.unwrap_or(row.least)] };
            let same = |(other, _): &&(Pair, At)| (&other.first, &other.second) == (&pair.first, &pair.second);
            if let Some((_, at)) = found.iter().find(same) {
                let both = vec![(*at, "first".to_string()), (row.at, "again".to_string())];
                report.rows("latency", format!("two rows for one pair on {}", model.name), both);
            }
            found.push((pair, row.at));
        }
        if let Some((_, at)) = found.get(MOST_PAIRS) {
            report.at("latency", format!("more than {MOST_PAIRS} pairs on {}", model.name), *at);
        }
        found.into_iter().map(|(pair, _)| pair).collect()
    }

    fn model(&self, row: Row<ModelRow>, targets: &Targets, sound: bool, report: &mut Report) -> LatencyModel {
        let columns = targets.columns(&row.on);
        let of =
            targets.built().filter(|(_, t)| columns.checked_shr(t.col).unwrap_or(0) & 1 != 0).map(|(i, _)| i).collect();
        let count = self.ori.ops.len();
        // Where a name is unknown the cells that miss it would be complaints without a cause of
        // their own.
        let mut scratch = Report::default();
        let to = if sound { report } else { &mut scratch };
        let members = on_model(&self.members, &row.name, |r| (&r.on, &r.ops));
        let base = (0..count).map(|op| self.base(&row, &members, op, to)).collect();
        let specials = (0..count).flat_map(|op| self.specials(&members, op, to)).collect();
        let both: Vec<_> = (0..KINDS.len()).map(|kind| self.distances(&row, kind, to)).collect();
        let [distances, demanded] = [0, 1].map(|whose| part(&both, whose));
        let least = on_model(&self.stalls, &row.name, |r| (&r.on, &r.ops));
        let both: Vec<[Stall; 2]> = (0..count).map(|op| self.stall(&row, &least, op, to)).collect();
        let [stalls, least] = [0, 1].map(|whose: usize| both.iter().map(|b| b[whose]).collect::<Vec<Stall>>());
        let pairs = self.pairs(&row, to);
        LatencyModel { row, targets: of, base, specials, distances, stalls, demanded: (demanded, least), pairs }
    }

    fn base(&self, model: &Row<ModelRow>, members: &[Worded<MemberRow>], op: usize, report: &mut Report) -> usize {
        let name = &self.ori.ops[op].row.op;
        let rows = members.iter().filter(|(r, ops)| r.when.is_empty() && r.part.is_empty() && names(ops, name));
        let found = best(rows.map(|(r, _)| (u32::from(r.ops != "*"), r.at, r.class.as_str())));
        one(&found, || format!("the class of {name} on {}", model.name), model.at, report);
        found.first().and_then(|f| self.class(f.1)).unwrap_or(0)
    }

    fn specials(&self, members: &[Worded<MemberRow>], op: usize, report: &mut Report) -> Vec<Special> {
        let data = &self.ori.ops[op];
        let mut out: Vec<(Special, At)> = Vec::new();
        let name = data.row.op.as_str();
        for (row, _) in
            members.iter().filter(|(r, ops)| !(r.when.is_empty() && r.part.is_empty()) && ops.contains(&name))
        {
            let parts: Vec<Option<(usize, Option<u8>)>> = if row.part.is_empty() {
                vec![None]
            } else {
                row.part.split_whitespace().map(|word| self.part(op, word, row.at, report)).collect()
            };
            for part in parts {
                let when = row.when.split_whitespace().filter_map(|word| modifier(self.ori, word)).collect();
                let special = Special { op, when, part, class: self.class(&row.class).unwrap_or(0) };
                if let Some((_, at)) = out.iter().find(|(o, _)| (&o.when, o.part) == (&special.when, special.part)) {
                    let both = vec![(*at, "first".to_string()), (row.at, "again".to_string())];
                    report.rows("latency", format!("{}: two rows for one part", data.row.op), both);
                }
                out.push((special, row.at));
            }
        }
        let rank = |s: &Special| {
            let part = match s.part {
                Some((_, Some(_))) => 2,
                Some((_, None)) => 1,
                None => 0,
            };
            (part, s.when.len())
        };
        out.sort_by_key(|(s, _)| std::cmp::Reverse(rank(s)));
        out.into_iter().map(|(s, _)| s).collect()
    }

    /// Parses `ROLE` or `ROLE.WORD`.
    fn part(&self, op: usize, word: &str, at: At, report: &mut Report) -> Option<(usize, Option<u8>)> {
        let (role, number) = word.split_once('.').map_or((word, None), |(r, n)| (r, Some(n)));
        let position = self.ori.ops[op].roles.iter().position(|r| r.name == role);
        let number = number.map(str::parse::<u8>);
        match (position, number.transpose()) {
            (Some(position), Ok(number)) => Some((position, number)),
            _ => {
                report.at("latency", format!("{} has no part `{word}`", self.ori.ops[op].row.op), at);
                None
            }
        }
    }

    fn distances(&self, model: &Row<ModelRow>, kind: usize, report: &mut Report) -> Cells<Both> {
        let count = self.classes.len();
        let mut out = vec![vec![vec![[0; 2]; count]; count]; FILES.len()];
        for (file, cells) in FILES.iter().zip(&mut out) {
            let rows: Vec<(&Row<DistanceRow>, &Line)> = self.distances[kind]
                .iter()
                .zip(&self.lines[kind])
                .filter(|(r, _)| lists(&r.on, &model.name) && lists(&r.file, file))
                .collect();
            for (f, line) in cells.iter_mut().enumerate() {
                let rows: Vec<_> = rows.iter().filter(|(_, line)| line.from[f]).collect();
                for (t, cell) in line.iter_mut().enumerate() {
                    let said = |(row, line): &(&Row<DistanceRow>, &Line)| {
                        line.to[t].map(|(rank, cycles)| (rank, row.at, cycles))
                    };
                    let found = best(rows.iter().copied().filter_map(said));
                    let what = || {
                        let [from, to] = [f, t].map(|class| &self.classes[class]);
                        format!("{} of {file} from {from} to {to} on {}", KINDS[kind], model.name)
                    };
                    one(&found, what, model.at, report);
                    *cell = found.first().map_or([0; 2], |f| f.1);
                }
            }
        }
        out
    }

    /// Minimum stall of an opcode: that of the schedule, and that of the simulator and the checker.
    fn stall(&self, model: &Row<ModelRow>, rows: &[Worded<StallRow>], op: usize, report: &mut Report) -> [Stall; 2] {
        let name = &self.ori.ops[op].row.op;
        let rows = rows.iter().filter(|(_, ops)| names(ops, name));
        let both = |r: &StallRow| {
            let demanded = r.demanded.unwrap_or(r.least);
            [[r.least; 2], [if r.guarded { r.least } else { demanded }, demanded]]
        };
        let found = best(rows.map(|(r, _)| (u32::from(r.ops != "*"), r.at, both(r))));
        one(&found, || format!("the least stall of {name} on {}", model.name), model.at, report);
        found.first().map_or([[1; 2]; 2], |f| f.1)
    }
}

const NO_ROW: &str = "no row says";

/// Reports unless there is exactly one answer.
fn one<T>(found: &[(At, T)], what: impl Fn() -> String, model: At, report: &mut Report) {
    match found.len() {
        1 => {}
        0 => {
            // Only the first cell of a model without an answer is reported.
            let silent = |e: &TableError| e.law == "latency" && e.message.starts_with(NO_ROW) && e.rows[0].0 == model;
            if !report.errors.iter().any(silent) {
                report.at("latency", format!("{NO_ROW} {}", what()), model);
            }
        }
        n => {
            let rows: Vec<(At, String)> = found.iter().map(|f| (f.0, String::new())).collect();
            // Rows that conflict in one cell conflict in many; only the first is reported.
            if !report.errors.iter().any(|e| e.law == "latency" && e.rows == rows) {
                report.rows("latency", format!("{n} rows of the same rank say {}", what()), rows);
            }
        }
    }
}

fn cycles_of(text: &str) -> Option<u8> {
    if text == "sb" { Some(SCOREBOARD) } else { text.parse().ok().filter(|n| (1..SCOREBOARD).contains(n)) }
}

/// One of the two sets of distances.
fn part(both: &[Cells<Both>], whose: usize) -> Distances {
    let line = |line: &Vec<Both>| line.iter().map(|b| b[whose]).collect();
    let file = |file: &Vec<Vec<Both>>| file.iter().map(line).collect();
    both.iter().map(|kind| kind.iter().map(file).collect()).collect()
}

/// The column that matches a class, and whether it matches by name.
fn column_of(column: &str, to: &str) -> Option<(bool, u8)> {
    let words: Vec<(&str, &str)> = column.split_whitespace().filter_map(|w| w.split_once(':')).collect();
    let exact = words.iter().find(|w| w.0 == to);
    let (_, cycles) = exact.or_else(|| words.iter().find(|w| w.0 == "*"))?;
    Some((exact.is_some(), cycles_of(cycles)?))
}

impl Line {
    /// A class by name outranks `*`; a model or file by name breaks ties.
    fn of(row: &Row<DistanceRow>, classes: &[String]) -> Line {
        let to = |class: &String| {
            let (exact, cycles) = column_of(&row.to, class)?;
            // A scoreboard counts as more than any number of cycles.
            let demanded = column_of(&row.demanded, class).map_or(cycles, |(_, less)| less.min(cycles));
            let rank = 4 * (u32::from(row.from != "*") + u32::from(exact))
                + u32::from(row.file != "*")
                + u32::from(row.on != "*");
            Some((rank + 1, [cycles, demanded]))
        };
        Line {
            from: classes.iter().map(|class| lists(&row.from, class)).collect(),
            to: classes.iter().map(to).collect(),
        }
    }
}
