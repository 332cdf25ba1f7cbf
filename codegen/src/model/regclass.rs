//! The register-class descriptors: categories, fields, their groups and lookup tables.
//!
//! The rows are those of `regclass/*.ron`. A text that is not a number or position is reported (law
//! `regclass`); the values are checked in `check/regclass.rs`.

use crate::report::Report;
use crate::rows::regclass::{CategoryRow, FieldRow, GroupRow, LutRow, PathRow};
use crate::source::{At, Row, Sources};

/// Position of a field: word of the descriptor, lowest bit, number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub word: u8,
    pub low: u8,
    pub bits: u8,
}

/// The category of an opcode with its texts parsed.
pub struct Category {
    pub row: Row<CategoryRow>,
    pub fields: Vec<u16>,
    /// Role and the letters of its allowed register files.
    pub contract: Vec<(String, String)>,
}

/// All tables of register classes.
#[derive(Default)]
pub struct Regclass {
    pub categories: Vec<Category>,
    pub fields: Vec<(Row<FieldRow>, Option<Place>)>,
    pub groups: Vec<Row<GroupRow>>,
    pub luts: Vec<(Row<LutRow>, Vec<u16>)>,
    pub path: Vec<(Row<PathRow>, Vec<u16>)>,
}

impl Regclass {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, report: &mut Report) -> Regclass {
        let categories: Vec<Row<CategoryRow>> = sources.rows("regclass/categories.ron", report);
        let fields: Vec<Row<FieldRow>> = sources.rows("regclass/fields.ron", report);
        let groups = sources.rows("regclass/groups.ron", report);
        let luts: Vec<Row<LutRow>> = sources.rows("regclass/luts.ron", report);
        let path: Vec<Row<PathRow>> = sources.rows("regclass/memory_path.ron", report);
        let mut read = |text: &str, at: At| {
            let number = |word: &str| match word.parse() {
                Ok(number) => Some(number),
                Err(_) => {
                    report.at("regclass", format!("`{word}` is no number"), at);
                    None
                }
            };
            text.split_whitespace().filter_map(number).collect::<Vec<u16>>()
        };
        let categories = categories
            .into_iter()
            .map(|row| {
                let halves = row.contract.split_whitespace().filter_map(|word| word.split_once(':'));
                let contract = halves.map(|(role, files)| (role.to_string(), files.to_string())).collect();
                Category { fields: read(&row.fields, row.at), contract, row }
            })
            .collect();
        let luts = luts.into_iter().map(|row| (read(&row.fields, row.at), row)).map(|(f, row)| (row, f)).collect();
        let path = path.into_iter().map(|row| (read(&row.nums, row.at), row)).map(|(n, row)| (row, n)).collect();
        let fields = fields.into_iter().map(|row| (place(&row, report), row)).map(|(p, row)| (row, p)).collect();
        Regclass { categories, fields, groups, luts, path }
    }

    /// Source and position of every row.
    pub fn evidence(&self) -> Vec<(&str, At)> {
        let mut all: Vec<(&str, At)> = self.categories.iter().map(|c| (c.row.src.as_str(), c.row.at)).collect();
        all.extend(self.fields.iter().map(|(r, _)| (r.src.as_str(), r.at)));
        all.extend(self.groups.iter().map(|r| (r.src.as_str(), r.at)));
        all.extend(self.luts.iter().map(|(r, _)| (r.src.as_str(), r.at)));
        all.extend(self.path.iter().map(|(r, _)| (r.src.as_str(), r.at)));
        all
    }
}

fn place(row: &Row<FieldRow>, report: &mut Report) -> Option<Place> {
    if row.place.is_empty() {
        return None;
    }
    let read = || {
        let (word, bits) = row.place.split_once(':')?;
        let (low, high) = bits.split_once('-').unwrap_or((bits, bits));
        let (low, high): (u8, u8) = (low.parse().ok()?, high.parse().ok()?);
        let word = word.parse().ok().filter(|w| *w < 5)?;
        (low <= high && high < 32).then(|| Place { word, low, bits: high - low + 1 })
    };
    let place = read();
    if place.is_none() {
        report.at("regclass", format!("`{}` is no place in a descriptor of five words", row.place), row.at);
    }
    place
}
