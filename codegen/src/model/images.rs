//! Functions of the driver for textures and surfaces, and the words that they are given.
//!
//! Names are resolved here; a row that does not resolve is reported and omitted.

use super::lowering::Names;
use crate::report::Report;
use crate::rows::images::{ImageCall, ImageCallRow, ImagePart, ImageWord, ImageWordRow};
use crate::source::{At, Row, Sources};

/// The names of arguments and results.
#[rustfmt::skip]
pub const ARGUMENTS: [&str; 30] = [
    "word", "image", "image_high", "sampler", "sampler_high", "x0", "x1", "x2", "x3", "level", "offsets", "shifted",
    "offset0", "offset1", "offset2", "dx0", "dx1", "dx2", "dy0", "dy1", "dy2", "compare", "v0", "v1", "v2", "v3",
    "zero", "any", "absent", "present",
];
/// Types of components that have functions of their own.
const ELEMENTS: [&str; 4] = ["f32", "s32", "u32", "f16"];

/// Where an argument or a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Register(u16),
    /// Bytes from the stack pointer.
    Stack(u16),
}

/// A function with its arguments and results.
pub struct Function {
    pub what: ImageCall,
    pub name: String,
    /// Index of the text in the group `geometry`.
    pub geometry: Option<usize>,
    /// The type of the components, if there is a function for each.
    pub element: Option<&'static str>,
    /// Indices of names of arguments, and their places.
    pub args: Vec<(usize, Place)>,
    pub results: Vec<(usize, Place)>,
    /// What an object says of it.
    pub prototype: String,
    pub at: At,
}

/// A field of a word with one value.
pub struct Field {
    pub of: ImageWord,
    pub part: ImagePart,
    pub mask: u32,
    pub bits: u32,
    pub at: At,
}

/// Both tables.
#[derive(Default)]
pub struct Images {
    pub functions: Vec<Function>,
    pub fields: Vec<Field>,
    /// Source and position of every row.
    pub evidence: Vec<(String, At)>,
}

impl Images {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, names: &Names, report: &mut Report) -> Images {
        let mut images = Images::default();
        for row in sources.rows::<ImageCallRow>("lowering/image_calls.ron", report) {
            images.evidence.push((row.src.clone(), row.at));
            match functions(names, &row) {
                Ok(found) => images.functions.extend(found),
                Err(message) => report.at("names", message, row.at),
            }
        }
        for row in sources.rows::<ImageWordRow>("lowering/image_words.ron", report) {
            images.evidence.push((row.src.clone(), row.at));
            images.fields.push(Field { of: row.of, part: row.part, mask: row.mask, bits: row.bits, at: row.at });
        }
        images
    }
}

/// The functions of a row, one for each geometry and type of components.
fn functions(names: &Names, row: &Row<ImageCallRow>) -> Result<Vec<Function>, String> {
    let (args, results) = (places(&row.args)?, places(&row.results)?);
    let one = |name: String, geometry: Option<usize>, element: Option<&'static str>| Function {
        what: row.what,
        name,
        geometry,
        element,
        args: args.clone(),
        results: results.clone(),
        prototype: row.prototype.clone(),
        at: row.at,
    };
    if row.geometries.is_empty() {
        return Ok(vec![one(row.name.clone(), None, None)]);
    }
    let known = |name: &str| {
        let found = ELEMENTS.iter().find(|known| **known == name);
        found.copied().ok_or_else(|| format!("`{name}` is no type of components with a function of its own"))
    };
    let elements = row.elements.split_whitespace().map(known).collect::<Result<Vec<_>, _>>()?;
    let mut found = Vec::new();
    for geometry in row.geometries.split_whitespace() {
        let (name, at) = (row.name.replace("{}", geometry), Some(names.text("geometry", geometry)?));
        if elements.is_empty() {
            found.push(one(name.clone(), at, None));
        }
        found.extend(elements.iter().map(|element| one(name.replace("[]", element), at, Some(element))));
    }
    Ok(found)
}

/// A list of arguments with their places.
fn places(list: &str) -> Result<Vec<(usize, Place)>, String> {
    let one = |item: &str| {
        let (name, place) = item.split_once('=')?;
        let number = place.get(1..)?.parse().ok()?;
        let place = match place.get(..1)? {
            "R" => Place::Register(number),
            "S" => Place::Stack(number),
            _ => return None,
        };
        Some((ARGUMENTS.iter().position(|known| *known == name)?, place))
    };
    list.split_whitespace()
        .map(|item| one(item).ok_or_else(|| format!("`{item}` is no argument and its place")))
        .collect()
}
