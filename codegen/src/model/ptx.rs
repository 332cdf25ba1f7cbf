//! Resolved PTX tables: operations, modifier groups, types, forms.

use super::targets::{Targets, terms};
use crate::report::Report;
use crate::rows::ptx::*;
use crate::source::{At, Row, Sources};

/// A modifier group and its texts.
pub struct Group {
    pub row: Row<GroupRow>,
    pub texts: Vec<Row<ModifierRow>>,
}

impl Group {
    /// The texts for which a predicate holds, one bit each.
    pub fn texts_that(&self, test: fn(&ModifierRow) -> bool) -> u32 {
        self.texts.iter().enumerate().map(|(i, text)| u32::from(test(text)) << i).sum()
    }
}

/// A name whose last part may be anywhere among the modifiers.
pub struct FreeName<'a> {
    /// The name without its last part.
    pub stem: &'a str,
    pub last: &'a str,
    /// The whole name.
    pub name: &'a str,
    pub op: usize,
}

/// The texts of a group that a form accepts.
#[derive(Clone, Debug)]
pub struct Rule {
    pub group: usize,
    /// One bit for each text of the group.
    pub mask: u32,
    pub required: bool,
}

/// The type of an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgType {
    /// The role alone determines what is accepted.
    None,
    Suffix(usize),
    /// Twice the width of the first suffix.
    Wide,
    Fixed(usize),
}

/// An operand of a form.
#[derive(Clone, Debug)]
pub struct Arg {
    pub role: usize,
    pub ty: ArgType,
    /// Registers of a fragment; 0 for another role.
    pub count: u8,
    pub by_shape: bool,
    pub optional: bool,
}

/// One form of one operation.
pub struct Form {
    pub op: usize,
    pub rules: Vec<Rule>,
    /// For each type suffix, the allowed types, one bit each.
    pub types: Vec<u64>,
    pub args: Vec<Arg>,
    /// Index of an address that no register narrower than 32 bits may be.
    pub whole: Option<u8>,
    pub ptx: (u32, u32),
    pub sm: u32,
    /// Columns of the targets that have it, if fewer than all from `sm` on.
    pub on: Option<u128>,
    /// What is said on the others, if not the general words.
    pub refused: String,
    pub src: String,
    pub at: At,
}

/// The requirement of a modifier or type on one operation.
pub struct Requirement {
    pub op: usize,
    /// Group and text.
    pub text: Option<(usize, usize)>,
    /// One bit for each type; 0: all.
    pub types: u64,
    pub row: usize,
}

/// A vector width of loads and stores.
pub struct Width {
    pub row: Row<VectorRow>,
    /// One bit for each text of the group `space`; 0: all.
    pub spaces: u32,
}

/// All PTX tables.
pub struct Ptx {
    pub operations: Vec<Row<OperationRow>>,
    pub planned: Vec<Row<PlannedRow>>,
    pub planned_form_rows: Vec<Row<PlannedFormRow>>,
    /// Operation and row of planned forms, sorted by operation.
    pub planned_forms: Vec<(usize, usize)>,
    pub groups: Vec<Group>,
    pub types: Vec<Row<TypeRow>>,
    pub sets: Vec<Row<TypeSetRow>>,
    pub roles: Vec<Row<RoleRow>>,
    /// Sorted by operation; within one operation, in file order.
    pub forms: Vec<Form>,
    pub requirement_rows: Vec<Row<RequirementRow>>,
    /// Sorted by operation.
    pub requirements: Vec<Requirement>,
    pub directives: Vec<Row<DirectiveRow>>,
    pub range_rows: Vec<Row<RangeRow>>,
    /// Operation and row, sorted by operation.
    pub ranges: Vec<(usize, usize)>,
    pub limits: Vec<Row<LimitRow>>,
    pub specials: Vec<Row<SpecialRow>>,
    pub versions: Vec<Row<VersionRow>>,
    pub fields: Vec<Row<FieldRow>>,
    pub field_values: Vec<Row<FieldValueRow>>,
    /// Narrowest first.
    pub vectors: Vec<Width>,
    /// Modifier rows whose group does not exist.
    pub stray: Vec<Row<ModifierRow>>,
}

impl Ptx {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, targets: &Targets, report: &mut Report) -> Ptx {
        let groups: Vec<Row<GroupRow>> = sources.rows("ptx/groups.ron", report);
        let mut ptx = Ptx {
            operations: sources.rows("ptx/operations.ron", report),
            planned: sources.rows("ptx/planned.ron", report),
            planned_form_rows: sources.rows("ptx/planned_forms.ron", report),
            planned_forms: Vec::new(),
            groups: groups.into_iter().map(|row| Group { row, texts: Vec::new() }).collect(),
            types: sources.rows("ptx/types.ron", report),
            sets: sources.rows("ptx/type_sets.ron", report),
            roles: sources.rows("ptx/roles.ron", report),
            forms: Vec::new(),
            requirement_rows: sources.rows("ptx/requirements.ron", report),
            requirements: Vec::new(),
            directives: sources.rows("ptx/directives.ron", report),
            range_rows: sources.rows("ptx/ranges.ron", report),
            ranges: Vec::new(),
            limits: sources.rows("ptx/limits.ron", report),
            specials: sources.rows("ptx/special_registers.ron", report),
            versions: sources.rows("ptx/versions.ron", report),
            fields: sources.rows("ptx/fields.ron", report),
            field_values: sources.rows("ptx/field_values.ron", report),
            vectors: Vec::new(),
            stray: Vec::new(),
        };
        for modifier in sources.rows::<ModifierRow>("ptx/modifiers.ron", report) {
            match ptx.groups.iter_mut().find(|g| g.row.group == modifier.group) {
                Some(group) => group.texts.push(modifier),
                None => ptx.stray.push(modifier),
            }
        }
        for row in sources.rows::<VectorRow>("ptx/vectors.ron", report) {
            let texts = ptx.groups.iter().find(|g| g.row.group == "space").map_or(&[][..], |g| &g.texts);
            let names: Vec<&str> = row.spaces.split_whitespace().collect();
            if let Some(name) = names.iter().find(|name| !texts.iter().any(|t| t.text == **name)) {
                report.at("names", format!("group `space` has no text `{name}`"), row.at);
            }
            let bit = |(i, t): (usize, &Row<ModifierRow>)| u32::from(names.contains(&t.text.as_str())) << i;
            let spaces = texts.iter().enumerate().map(bit).sum();
            ptx.vectors.push(Width { row, spaces });
        }
        ptx.vectors.sort_by_key(|w| w.row.bits);
        for row in sources.folder::<FormRow>("ptx/forms", &[], report) {
            ptx.form(&row, targets, report);
        }
        ptx.forms.sort_by_key(|f| f.op);
        ptx.resolve_requirements(report);
        ptx.ranges = ptx.by_operation(ptx.range_rows.iter().map(|r| (r.op.as_str(), r.at)), report);
        let planned = ptx.planned_form_rows.iter().map(|r| (r.op.as_str(), r.at));
        ptx.planned_forms = ptx.by_operation(planned, report);
        ptx
    }

    /// The operations that rows list, each with the number of its row, sorted by operation.
    fn by_operation<'r>(&self, rows: impl Iterator<Item = (&'r str, At)>, report: &mut Report) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (row, (ops, at)) in rows.enumerate() {
            let ops = ops.split_whitespace().filter_map(|name| self.operation(name, at, report));
            found.extend(ops.map(|op| (op, row)));
        }
        found.sort();
        found
    }

    /// Source and position of every row.
    pub fn evidence(&self) -> Vec<(&str, At)> {
        let mut out: Vec<(&str, At)> = Vec::new();
        out.extend(self.operations.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.planned.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.planned_form_rows.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.groups.iter().map(|g| (g.row.src.as_str(), g.row.at)));
        out.extend(self.groups.iter().flat_map(|g| &g.texts).map(|r| (r.src.as_str(), r.at)));
        out.extend(self.types.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.sets.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.roles.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.forms.iter().map(|f| (f.src.as_str(), f.at)));
        out.extend(self.requirement_rows.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.directives.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.range_rows.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.limits.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.specials.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.vectors.iter().map(|w| (w.row.src.as_str(), w.row.at)));
        out.extend(self.versions.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.fields.iter().map(|r| (r.src.as_str(), r.at)));
        out.extend(self.field_values.iter().map(|r| (r.src.as_str(), r.at)));
        out
    }

    /// The operation names whose last part is free.
    pub fn free_names(&self) -> impl Iterator<Item = FreeName<'_>> {
        let free = self.operations.iter().enumerate().filter(|(_, o)| o.free);
        let names = free.flat_map(|(op, o)| {
            std::iter::once(o.op.as_str()).chain(o.also.split_whitespace()).map(move |name| (op, name))
        });
        names.filter_map(|(op, name)| {
            let (stem, last) = name.rsplit_once('.')?;
            Some(FreeName { stem, last, name, op })
        })
    }

    /// Whether a modifier or type has this spelling.
    pub fn is_suffix(&self, word: &str) -> bool {
        let mut texts = self.groups.iter().flat_map(|g| &g.texts);
        texts.any(|t| t.text == word) || self.types.iter().any(|t| t.name == word)
    }

    fn operation(&self, name: &str, at: At, report: &mut Report) -> Option<usize> {
        let found = self.operations.iter().position(|o| o.op == name);
        if found.is_none() {
            report.at("names", format!("no PTX operation is called `{name}`"), at);
        }
        found
    }

    fn form(&mut self, row: &Row<FormRow>, targets: &Targets, report: &mut Report) {
        if let Err(word) = terms(&row.on) {
            report.at("names", format!("`{word}` is not a range of targets"), row.at);
        }
        let on = (!row.on.is_empty()).then(|| targets.columns(&row.on));
        let rules: Vec<Rule> = row.mods.split_whitespace().filter_map(|w| self.rule(w, row.at, report)).collect();
        let slots = row.types.split(',').map(str::trim).filter(|slot| !slot.is_empty());
        let types: Vec<u64> = slots.map(|slot| self.type_mask(slot, row.at, report)).collect();
        let args: Vec<Arg> = row.args.split_whitespace().filter_map(|w| self.arg(w, row.at, report)).collect();
        let ptx = version(&row.ptx).unwrap_or_else(|| {
            report.at("names", format!("`{}` is not a PTX version", row.ptx), row.at);
            (0, 0)
        });
        for name in row.op.split_whitespace() {
            if let Some(op) = self.operation(name, row.at, report) {
                let (rules, types, args) = (rules.clone(), types.clone(), args.clone());
                let (whole, sm, refused, src) = (row.whole, row.sm, row.refused.clone(), row.src.clone());
                self.forms.push(Form { op, rules, types, args, whole, ptx, sm, on, refused, src, at: row.at });
            }
        }
    }

    /// Parses `group`, `group?`, `group(a|b)` or `group(a|b)?`.
    fn rule(&self, word: &str, at: At, report: &mut Report) -> Option<Rule> {
        let (body, required) = word.strip_suffix('?').map_or((word, true), |body| (body, false));
        let (name, list) = match body.split_once('(') {
            Some((name, rest)) => (name, Some(rest.trim_end_matches(')'))),
            None => (body, None),
        };
        let Some(group) = self.groups.iter().position(|g| g.row.group == name) else {
            report.at("names", format!("no modifier group is called `{name}`"), at);
            return None;
        };
        let texts = &self.groups[group].texts;
        let mut mask = 0;
        match list {
            None => mask = ((1u64 << texts.len()) - 1) as u32,
            Some(list) => {
                for text in list.split('|') {
                    match texts.iter().position(|t| t.text == text) {
                        Some(i) => mask |= 1 << i,
                        None => report.at("names", format!("group `{name}` has no text `{text}`"), at),
                    }
                }
            }
        }
        Some(Rule { group, mask, required })
    }

    /// Parses types and sets of types, separated by blanks, one bit each.
    fn type_mask(&self, words: &str, at: At, report: &mut Report) -> u64 {
        let mut mask = 0;
        for word in words.split_whitespace() {
            let set = self.sets.iter().find(|s| s.set == word);
            for name in set.map_or(word, |s| s.types.as_str()).split_whitespace() {
                match self.types.iter().position(|t| t.name == name) {
                    Some(i) => mask |= 1 << i,
                    None => report.at("names", format!("no PTX type is called `{name}`"), at),
                }
            }
        }
        mask
    }

    /// Parses `ROLE[:TYPE[*REGISTERS]][?]`.
    fn arg(&self, word: &str, at: At, report: &mut Report) -> Option<Arg> {
        let (body, optional) = word.strip_suffix('?').map_or((word, false), |body| (body, true));
        let (body, count) = body.split_once('*').map_or((body, None), |(body, count)| (body, Some(count)));
        let by_shape = count.is_some_and(|count| count.starts_with("N/"));
        let count = count.map(|count| count.strip_prefix("N/").unwrap_or(count).parse());
        let (body, count) = match (body, count) {
            (body, None) => (body, 0),
            (body, Some(Ok(count))) => (body, count),
            (body, Some(Err(_))) => {
                report.at("names", format!("`{word}` does not end in a number of registers"), at);
                (body, 0)
            }
        };
        let (name, ty) = body.split_once(':').map_or((body, None), |(name, ty)| (name, Some(ty)));
        let Some(role) = self.roles.iter().position(|r| r.role == name) else {
            report.at("names", format!("no operand role is called `{name}`"), at);
            return None;
        };
        let ty = match ty {
            None => ArgType::None,
            Some("wide") => ArgType::Wide,
            Some(text) => match (text.parse(), self.types.iter().position(|t| t.name == text)) {
                (Ok(suffix), _) => ArgType::Suffix(suffix),
                (_, Some(ty)) => ArgType::Fixed(ty),
                _ => {
                    report.at("names", format!("no PTX type is called `{text}`"), at);
                    ArgType::None
                }
            },
        };
        Some(Arg { role, ty, count, by_shape, optional })
    }

    fn resolve_requirements(&mut self, report: &mut Report) {
        let mut out = Vec::new();
        for (row, r) in self.requirement_rows.iter().enumerate() {
            let types = self.type_mask(&r.types, r.at, report);
            if version(&r.ptx).is_none() {
                report.at("names", format!("`{}` is not a PTX version", r.ptx), r.at);
            }
            let ops: Vec<usize> =
                r.op.split_whitespace().filter_map(|name| self.operation(name, r.at, report)).collect();
            for op in ops {
                let text = self.text_on(op, &r.text);
                if text.is_none() && !r.text.is_empty() {
                    report.at("names", format!("`{}` takes no modifier `{}`", self.operations[op].op, r.text), r.at);
                }
                out.push(Requirement { op, text, types, row });
            }
        }
        out.sort_by_key(|r: &Requirement| r.op);
        self.requirements = out;
    }

    /// Group and text of a modifier, as the forms of an operation accept it.
    fn text_on(&self, op: usize, text: &str) -> Option<(usize, usize)> {
        let rules = self.forms.iter().filter(|f| f.op == op).flat_map(|f| &f.rules);
        rules.into_iter().find_map(|rule| {
            let i = self.groups[rule.group].texts.iter().position(|t| t.text == text)?;
            (rule.mask >> i & 1 != 0).then_some((rule.group, i))
        })
    }
}

/// `major.minor`
pub fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
