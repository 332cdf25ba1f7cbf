//! Resolved lowering tables of matrix operations: one multiplication per list of types, and the
//! fragment layouts.
//!
//! The rows are those of `lowering/*.ron`. A row that does not resolve is reported and omitted.

use super::ori::Ori;
use super::ptx::Ptx;
use super::targets::Targets;
use crate::report::Report;
use crate::rows::lowering::{MapFieldRow, MapTypeRow, NarrowRow, ProductRow, TileRow, Way};
use crate::source::{At, Row, Sources};

/// Features that the target must have (`true`) or must not have.
pub type Conditions = Vec<(usize, bool)>;

/// A kind of modifier and its value.
pub type Modifier = (usize, usize);

/// One matrix multiplication: the instruction of a PTX form with these types.
pub struct Product {
    pub op: usize,
    /// Index of the text in the group `matrix_shape`.
    pub shape: usize,
    pub types: Vec<usize>,
    /// Index of the text in the group `bit_op`.
    pub bit: Option<usize>,
    pub conditions: Conditions,
    pub way: Way,
    pub inst: usize,
    /// Kind and value.
    pub mods: Vec<(usize, usize)>,
    pub frag: [u8; 3],
    pub steps: Vec<[u8; 3]>,
    pub swap: bool,
    pub at: At,
}

/// Location of a fragment's registers in the matrix.
pub struct Tile {
    pub part: char,
    pub shape: usize,
    /// One bit for each type.
    pub types: u64,
    pub conditions: Conditions,
    pub rows: bool,
    pub per: u8,
    pub tiles: Vec<(u8, u8)>,
}

/// How F2FP spells a float of 8 bits or fewer.
pub struct Narrow {
    pub ty: usize,
    pub wide: usize,
    /// F2FP modifier (kind and value) that selects the type as the result (`made`), and as the
    /// source (`read`).
    pub made: (usize, usize),
    pub read: (usize, usize),
}

/// The lowering tables of matrix operations.
#[derive(Default)]
pub struct Lowering {
    pub products: Vec<Product>,
    pub tiles: Vec<Tile>,
    pub narrow: Vec<Narrow>,
    /// Fields of a tensor map.
    pub map_fields: Vec<MapFieldRow>,
    /// Types of its elements, with the PTX type.
    pub map_types: Vec<(MapTypeRow, Option<usize>)>,
    /// Source and position of every row.
    pub evidence: Vec<(String, At)>,
}

/// Parsers of the columns of `lowering/*.ron`.
pub struct Names<'a> {
    pub ptx: &'a Ptx,
    pub ori: &'a Ori,
    pub targets: &'a Targets,
}

impl Lowering {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, ptx: &Ptx, ori: &Ori, targets: &Targets, report: &mut Report) -> Lowering {
        let names = Names { ptx, ori, targets };
        let mut lowering = Lowering::default();
        for row in sources.rows::<ProductRow>("lowering/matrix.ron", report) {
            lowering.evidence.push((row.src.clone(), row.at));
            match names.products(&row) {
                Ok(products) => lowering.products.extend(products),
                Err(message) => report.at("names", message, row.at),
            }
        }
        for row in sources.rows::<TileRow>("lowering/tiles.ron", report) {
            lowering.evidence.push((row.src.clone(), row.at));
            match names.tile(&row) {
                Ok(tile) => lowering.tiles.push(tile),
                Err(message) => report.at("names", message, row.at),
            }
        }
        for row in sources.rows::<NarrowRow>("lowering/narrow.ron", report) {
            lowering.evidence.push((row.src.clone(), row.at));
            match names.narrow(&row) {
                Ok(narrow) => lowering.narrow.push(narrow),
                Err(message) => report.at("names", message, row.at),
            }
        }
        lowering.load_tensor_map(sources, &names, report);
        lowering
    }

    /// Reads the rows of tensor maps: the fields lie in the map and do not overlap.
    fn load_tensor_map(&mut self, sources: &mut Sources, names: &Names, report: &mut Report) {
        let mut taken: Vec<(u16, u16, u8)> = Vec::new();
        for Row { data: row, at } in sources.rows::<MapFieldRow>("lowering/tensor_map.ron", report) {
            self.evidence.push((row.src.clone(), at));
            let own = (row.at, row.at + u16::from(row.bits), row.rank);
            // A box of pixels stands where other maps have a box.
            let meets = |other: &(u16, u16, u8)| own.0 < other.1 && other.0 < own.1 && own.2 == other.2;
            if own.1 > MAP_BITS || taken.iter().any(meets) {
                report.at("names", format!("bits {} to {} are outside of the map or taken", own.0, own.1), at);
            }
            taken.push(own);
            self.map_fields.push(row);
        }
        for Row { data: row, at } in sources.rows::<MapTypeRow>("lowering/tensor_type.ron", report) {
            self.evidence.push((row.src.clone(), at));
            match names.types(&row.ty) {
                Ok(types) => self.map_types.push((row, types.first().copied())),
                Err(message) => report.at("names", message, at),
            }
        }
    }
}

/// Bits of a tensor map.
const MAP_BITS: u16 = 1024;

impl Names<'_> {
    /// All texts of a modifier group.
    pub fn texts(&self, group: &str) -> Vec<&str> {
        let group = self.ptx.groups.iter().find(|g| g.row.group == group);
        group.map_or(Vec::new(), |g| g.texts.iter().map(|t| t.text.as_str()).collect())
    }

    /// The index of a text in its modifier group.
    pub fn text(&self, group: &str, text: &str) -> Result<usize, String> {
        self.texts(group).iter().position(|t| *t == text).ok_or_else(|| format!("group `{group}` has no text `{text}`"))
    }

    fn types(&self, words: &str) -> Result<Vec<usize>, String> {
        let found = |name: &str| self.ptx.types.iter().position(|t| t.name == name);
        words.split_whitespace().map(|w| found(w).ok_or_else(|| format!("no PTX type is called `{w}`"))).collect()
    }

    fn conditions(&self, words: &str) -> Result<Conditions, String> {
        let one = |word: &str| {
            let (name, holds) = word.strip_prefix('!').map_or((word, true), |name| (name, false));
            let feature = self.targets.features.iter().position(|f| f.name == name);
            feature.map(|f| (f, holds)).ok_or_else(|| format!("no feature is called `{name}`"))
        };
        words.split_whitespace().map(one).collect()
    }

    /// A PTX operation.
    pub fn operation(&self, name: &str) -> Result<usize, String> {
        let op = self.ptx.operations.iter().position(|o| o.op == name);
        op.ok_or_else(|| format!("no PTX operation is called `{name}`"))
    }

    fn products(&self, row: &Row<ProductRow>) -> Result<Vec<Product>, String> {
        let op = self.operation(&row.op)?;
        let inst = self.ori.op(&row.inst).ok_or_else(|| format!("no opcode is called `{}`", row.inst))?;
        let mut lists: Vec<Vec<usize>> = vec![Vec::new()];
        for slot in row.types.split(',') {
            let slot = self.types(slot)?;
            lists = lists.iter().flat_map(|l| slot.iter().map(move |t| [l.as_slice(), &[*t]].concat())).collect();
        }
        let bit = if row.bit.is_empty() { None } else { Some(self.text("bit_op", &row.bit)?) };
        let (shape, conditions) = (self.text("matrix_shape", &row.shape)?, self.conditions(&row.only_if)?);
        let frag = numbers(&row.frag, ' ')?;
        let steps: Vec<[u8; 3]> = row.steps.split_whitespace().map(|s| numbers(s, ':')).collect::<Result<_, _>>()?;
        let product = |types: Vec<usize>| {
            let mods = row.mods.split_whitespace().map(|w| self.modifier(w, &types)).collect::<Result<_, _>>()?;
            let (conditions, steps) = (conditions.clone(), steps.clone());
            let (way, swap, at) = (row.way, row.swap, row.at);
            Ok(Product { op, shape, types, bit, conditions, way, inst, mods, frag, steps, swap, at })
        };
        lists.into_iter().map(product).collect()
    }

    /// `KIND=VALUE`, `KIND={N}`, `KIND={N:t=V,u=W}`
    pub fn modifier(&self, word: &str, types: &[usize]) -> Result<Modifier, String> {
        let wrong = || format!("`{word}` is not a modifier kind and a value");
        let (kind, value) = word.split_once('=').ok_or_else(wrong)?;
        let name = |n: &str| -> Result<&str, String> {
            let ty = n.parse::<usize>().ok().and_then(|n| types.get(n)).ok_or_else(wrong)?;
            Ok(&self.ptx.types[*ty].name)
        };
        let value = match value.strip_prefix('{').and_then(|v| v.strip_suffix('}')) {
            None => value.to_string(),
            Some(inner) => match inner.split_once(':') {
                None => name(inner)?.to_uppercase(),
                Some((n, list)) => {
                    let name = name(n)?;
                    let mut pairs = list.split(',').filter_map(|pair| pair.split_once('='));
                    pairs.find(|(ty, _)| *ty == name).ok_or_else(wrong)?.1.to_string()
                }
            },
        };
        let kind = self.ori.kinds.iter().position(|k| k.name == kind).ok_or_else(wrong)?;
        let value = self.ori.kinds[kind].values.iter().position(|v| *v == value).ok_or_else(wrong)?;
        Ok((kind, value))
    }

    fn narrow(&self, row: &Row<NarrowRow>) -> Result<Narrow, String> {
        let one = |name: &str| match self.types(name)?.as_slice() {
            [ty] => Ok(*ty),
            _ => Err(format!("`{name}` is not one type")),
        };
        let spelt = |kind: &str| self.modifier(&format!("{kind}={}", row.name), &[]);
        Ok(Narrow { ty: one(&row.ty)?, wide: one(&row.wide)?, made: spelt("f2fp")?, read: spelt("src")? })
    }

    fn tile(&self, row: &Row<TileRow>) -> Result<Tile, String> {
        let part = row.part.chars().next().filter(|c| "abc".contains(*c));
        let part = part.ok_or_else(|| format!("`{}` is not a, b or c", row.part))?;
        let types = self.types(&row.types)?.into_iter().fold(0, |mask, ty| mask | 1 << ty);
        let tiles = row.tiles.split_whitespace().map(|t| numbers::<2>(t, ',').map(|[x, y]| (x, y)));
        Ok(Tile {
            part,
            shape: self.text("matrix_shape", &row.shape)?,
            types,
            conditions: self.conditions(&row.only_if)?,
            rows: row.along == "row",
            per: row.per,
            tiles: tiles.collect::<Result<_, _>>()?,
        })
    }
}

fn numbers<const N: usize>(text: &str, between: char) -> Result<[u8; N], String> {
    let list: Vec<u8> = text.split(between).filter_map(|n| n.parse().ok()).collect();
    list.try_into().map_err(|_| format!("`{text}` is not {N} numbers"))
}
