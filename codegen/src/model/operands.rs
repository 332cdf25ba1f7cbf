//! Resolved operand recipes and materializing moves.

use super::ori::Ori;
use crate::report::Report;
use crate::rows::ori::{MoveRow, RecipeRow};
use crate::source::{At, Row, Sources};

/// The six ways to materialize an operand, as recipes spell them.
pub const MATERIALS: [&str; 6] = ["mat", "try", "special", "arch", "pred", "uniform"];
/// Rewrites that are tried before a move.
pub const EXCHANGES: [&str; 6] = ["swap", "table", "mirror", "select", "sign", "base"];

/// One word of a recipe: `NAME(ROLE ...)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub name: String,
    /// Roles; for `backend`, the name of a hook.
    pub of: Vec<String>,
    /// Written with `..`: applies to all words of the operand.
    pub many: bool,
    /// Written with `?`: applies only if the instruction has the operand.
    pub optional: bool,
}

/// A recipe with its steps parsed.
pub struct Recipe {
    pub row: Row<RecipeRow>,
    pub steps: Vec<Step>,
}

impl Recipe {
    /// The steps that materialize operands.
    pub fn materials(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|s| MATERIALS.contains(&s.name.as_str()))
    }

    /// The steps that rewrite the instruction without a move.
    pub fn exchanges(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|s| EXCHANGES.contains(&s.name.as_str()))
    }

    /// The backend hook that it depends on.
    pub fn hook(&self) -> Option<&str> {
        self.steps.iter().find(|s| s.name == "backend").map(|s| s.of[0].as_str())
    }

    /// Destination and source of a move that may change its opcode.
    pub fn moves(&self) -> Option<&[String]> {
        self.steps.iter().find(|s| s.name == "move").map(|s| s.of.as_slice())
    }

    /// The category of the steps.
    pub fn category(&self) -> &'static str {
        let any = |test: &dyn Fn(&Step) -> bool| self.steps.iter().any(test);
        match () {
            () if self.hook().is_some() => "C",
            () if self.moves().is_some() => "D",
            () if any(&|s| s.many) => "B",
            () if any(&|s| s.name == "arch") => "F",
            () if any(&|s| s.optional) => "E",
            () if self.steps.is_empty() => "G",
            () => "A",
        }
    }
}

/// How a value moves into a register: opcode, modifiers (kind, value), and the value of each role.
pub struct Move {
    pub row: Row<MoveRow>,
    pub op: usize,
    pub mods: Vec<(usize, usize)>,
    pub args: Vec<(String, String)>,
}

/// All recipes and moves.
pub struct Operands {
    pub recipes: Vec<Recipe>,
    pub moves: Vec<Move>,
}

impl Operands {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, ori: &Ori, report: &mut Report) -> Operands {
        let rows: Vec<Row<RecipeRow>> = sources.rows("ori/recipes.ron", report);
        let recipes = rows.into_iter().map(|row| Recipe { steps: steps(&row, report), row }).collect();
        let rows: Vec<Row<MoveRow>> = sources.rows("ori/moves.ron", report);
        let moves = rows.into_iter().filter_map(|row| one_move(row, ori, report)).collect();
        Operands { recipes, moves }
    }

    /// Position of a recipe.
    pub fn recipe(&self, name: &str) -> Option<usize> {
        self.recipes.iter().position(|r| r.row.name == name)
    }

    /// Names of the backend's hooks, in the order of the recipes.
    pub fn hooks(&self) -> Vec<&str> {
        let mut hooks: Vec<&str> = self.recipes.iter().filter_map(Recipe::hook).collect();
        hooks.sort_unstable();
        hooks.dedup();
        hooks
    }

    /// Source and position of every row.
    pub fn evidence(&self) -> impl Iterator<Item = (&str, At)> {
        let recipes = self.recipes.iter().map(|r| (r.row.src.as_str(), r.row.at));
        recipes.chain(self.moves.iter().map(|m| (m.row.src.as_str(), m.row.at)))
    }
}

fn steps(row: &Row<RecipeRow>, report: &mut Report) -> Vec<Step> {
    let mut out = Vec::new();
    let mut rest = row.steps.trim();
    while !rest.is_empty() {
        let Some((word, after)) = rest.split_once(')') else {
            report.at("recipe", format!("{}: `{rest}` is not NAME(ROLE ...)", row.name), row.at);
            return out;
        };
        let optional = after.starts_with('?');
        rest = after.trim_start_matches('?').trim_start();
        let (name, inner) = word.split_once('(').unwrap_or((word, ""));
        let many = inner.ends_with("..");
        let of: Vec<String> = inner.trim_end_matches("..").split_whitespace().map(str::to_string).collect();
        let wanted = match name {
            "swap" | "table" => 2..=3,
            "mirror" | "select" | "sign" | "base" | "move" => 2..=2,
            "backend" => 1..=1,
            _ if MATERIALS.contains(&name) => 1..=1,
            _ => 0..=0,
        };
        if wanted == (0..=0) {
            report.at("recipe", format!("{}: `{name}` is no step", row.name), row.at);
        } else if !wanted.contains(&of.len()) {
            report.at("recipe", format!("{}: `{word})` has {} operands", row.name, of.len()), row.at);
        } else {
            out.push(Step { name: name.to_string(), of, many, optional });
        }
    }
    out
}

fn one_move(row: Row<MoveRow>, ori: &Ori, report: &mut Report) -> Option<Move> {
    let wrong = |report: &mut Report, what: String| report.at("move", format!("{}: {what}", row.op), row.at);
    let Some(op) = ori.op(&row.op) else {
        wrong(report, "no opcode is called so".to_string());
        return None;
    };
    let mut mods = Vec::new();
    for word in row.mods.split_whitespace() {
        let found = word.split_once('=').and_then(|(kind, text)| {
            let kind = ori.kinds.iter().position(|k| k.name == kind)?;
            Some((kind, ori.kinds[kind].values.iter().position(|v| v == text)?))
        });
        match found {
            Some(found) => mods.push(found),
            None => wrong(report, format!("`{word}` is not a modifier kind and a value")),
        }
    }
    let mut args = Vec::new();
    for word in row.args.split_whitespace() {
        let (role, part) = word.split_once('=').unwrap_or((word, ""));
        let known = matches!(part, "to" | "from" | "!from" | "PT" | "!PT" | "RZ") || part.parse::<u32>().is_ok();
        if !known || !ori.ops[op].roles.iter().any(|r| r.name == role) {
            wrong(report, format!("`{word}` is not a role of the opcode and a part"));
        }
        args.push((role.to_string(), part.to_string()));
    }
    Some(Move { op, mods, args, row })
}
