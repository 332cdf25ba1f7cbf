//! The helpers, expanded from the families in `helpers/*.ron` and the bodies beside them.
//!
//! Call targets come first, sorted by name in ASCII order, and their index is their id; inline
//! templates follow by category and name.

use super::helper_text::{Slot, body, choices, fill, head, parameters, slots};
use super::targets::Targets;
use crate::report::Report;
use crate::rows::helpers::{Body, CategoryRow, FamilyRow, Tier};
use crate::source::{Row, Sources};
use std::collections::BTreeMap;

/// One helper of a family.
pub struct Helper {
    pub id: u16,
    pub name: String,
    pub category: usize,
    pub family: usize,
    pub op: String,
    pub computes: String,
    pub returns: Vec<Slot>,
    pub params: Vec<Slot>,
    pub head: String,
    /// Empty if it is not implemented.
    pub body: String,
}

/// All helpers, in the order of their ids.
#[derive(Default)]
pub struct Helpers {
    pub categories: Vec<Row<CategoryRow>>,
    pub families: Vec<Row<FamilyRow>>,
    /// Targets that use a family, one bit for each column.
    pub columns: Vec<u128>,
    pub helpers: Vec<Helper>,
    /// The body files in the folder, and whether a family names them.
    pub files: BTreeMap<String, bool>,
}

const FOLDER: &str = "helpers";

impl Helpers {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, targets: &Targets, report: &mut Report) -> Helpers {
        let categories = sources.rows(&format!("{FOLDER}/categories.ron"), report);
        let families: Vec<Row<FamilyRow>> = sources.folder(FOLDER, &["categories.ron"], report);
        let columns = families.iter().map(|f| targets.columns(&f.on)).collect();
        let mut all = Helpers { categories, families, columns, helpers: Vec::new(), files: body_files(sources) };
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for number in 0..all.families.len() {
            match all.expand(number, sources, &mut texts) {
                Ok(helpers) => all.helpers.extend(helpers),
                Err(message) => report.at("helpers", message, all.families[number].at),
            }
        }
        all.number();
        all
    }

    /// Expands every helper of a family.
    fn expand(
        &mut self,
        number: usize,
        sources: &Sources,
        texts: &mut BTreeMap<String, String>,
    ) -> Result<Vec<Helper>, String> {
        let family = &self.families[number];
        let category = self.categories.iter().position(|c| c.category == family.category);
        let category = category.ok_or(format!("no category is called `{}`", family.category))?;
        let text = match &family.body {
            Body::Planned(why) if why.trim().is_empty() => return Err("a planned body says why".into()),
            Body::Planned(_) => None,
            Body::Ptx(file) => {
                let Some(named) = self.files.get_mut(file) else { return Err(format!("no body is called `{file}`")) };
                *named = true;
                let path = sources.root.join(FOLDER).join(file);
                let read = || std::fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"));
                Some(match texts.get(file) {
                    Some(text) => text.clone(),
                    None => texts.entry(file.clone()).or_insert(read()?).clone(),
                })
            }
        };
        let family = &self.families[number];
        let mut helpers = Vec::new();
        for values in choices(&parameters(&family.with)?) {
            let column = |text: &str| fill(text, ("{", '}'), &values, &[]);
            let name = column(&family.names)?;
            let memory = family.convention == 'C';
            let (returns, params) =
                (slots(&column(&family.returns)?, memory)?, slots(&column(&family.params)?, memory)?);
            let body = match (&text, &family.body) {
                (Some(text), Body::Ptx(file)) => {
                    body(text, &values, &returns, &params).map_err(|m| format!("{name}: {file}: {m}"))?
                }
                _ => String::new(),
            };
            let head = head(&name, &returns, &params);
            let (op, computes) = (column(&family.op)?, column(&family.computes)?);
            helpers.push(Helper { id: 0, name, category, family: number, op, computes, returns, params, head, body });
        }
        Ok(helpers)
    }

    /// Sorts the helpers and assigns ids.
    fn number(&mut self) {
        let categories = &self.categories;
        let tier = |h: &Helper| categories[h.category].tier;
        let order = |h: &Helper| match tier(h) {
            Tier::Call => (0, h.name.clone()),
            Tier::Inline => (1 + h.category, h.name.clone()),
        };
        self.helpers.sort_by_key(order);
        for (place, helper) in self.helpers.iter_mut().enumerate() {
            helper.id = place as u16 + 1;
        }
    }
}

/// Names of the PTX files beside the tables.
fn body_files(sources: &Sources) -> BTreeMap<String, bool> {
    let entries = std::fs::read_dir(sources.root.join(FOLDER)).into_iter().flatten().flatten();
    let names = entries.filter_map(|e| e.file_name().into_string().ok());
    names.filter(|n| n.ends_with(".ptx")).map(|n| (n, false)).collect()
}
