//! The helpers: what they are called, what they are given, what they do. Source: `helpers/`.

/// How a helper gets into the code that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// A weak function that is called.
    Call,
    /// A template that is spliced into its caller.
    Inline,
}

/// Where a name or a prototype comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Published,
    Derived,
    Proposed,
}

/// A value, several or an array of a prototype.
#[derive(Debug)]
pub struct Slot {
    /// PTX type: `b32`.
    pub ty: &'static str,
    pub name: &'static str,
    /// How many values; 0: one, whose register has the name without a number.
    pub count: u16,
    /// In memory (`.param`) instead of registers.
    pub memory: bool,
    /// Of an array, in bytes; else 0.
    pub align: u16,
}

/// Helpers with ids in a row.
#[derive(Debug)]
pub struct Category {
    pub name: &'static str,
    pub tier: Tier,
    /// Lowest id.
    pub first: u16,
    /// Number of helpers.
    pub count: u16,
}

/// Helpers that one row describes.
#[derive(Debug)]
pub struct Family {
    pub names: &'static str,
    /// Calling convention, A to E as in the legend of the tables.
    pub convention: char,
    /// Targets that use it, one bit for each column.
    pub columns: u128,
    /// If expansions call it for operands that their short path rejects: number of the first
    /// general register that this leaves alone; else 0.
    pub slow_path: u16,
    /// Why it has no body.
    pub planned: Option<&'static str>,
    pub name: Status,
    pub proto: Status,
    pub src: &'static str,
}

/// A helper.
#[derive(Debug)]
pub struct Helper {
    /// From 1 on.
    pub id: u16,
    pub name: &'static str,
    category: u16,
    family: u16,
    /// The PTX operation that it implements.
    pub op: &'static str,
    /// Description of the result.
    pub computes: &'static str,
    pub returns: &'static [Slot],
    pub params: &'static [Slot],
    /// `.func (…) name (…)`
    pub head: &'static str,
    /// Its PTX, which falls through at its end; empty if it is not implemented.
    pub body: &'static str,
}

impl Status {
    /// As the tables have it, in small letters.
    pub fn name(self) -> &'static str {
        match self {
            Status::Published => "published",
            Status::Derived => "derived",
            Status::Proposed => "proposed",
        }
    }
}

impl Slot {
    /// Names of its registers.
    pub fn registers(&self) -> Vec<String> {
        match self.count {
            0 => vec![self.name.to_string()],
            n => (0..n).map(|i| format!("{}{i}", self.name)).collect(),
        }
    }

    /// Bytes of one value.
    pub fn bytes(&self) -> u64 {
        if self.ty.ends_with("64") { 8 } else { 4 }
    }

    /// What is passed for it: bytes and alignment of each.
    pub fn passed(&self) -> Vec<(u64, u64)> {
        let (bytes, count) = (self.bytes(), usize::from(self.count.max(1)));
        match self.memory && self.count > 0 {
            true => vec![(bytes * count as u64, self.align.into())],
            false => vec![(bytes, bytes); count],
        }
    }
}

/// What the names of slow paths begin with.
const SLOW_PATH: &str = "$__internal_$";

impl Helper {
    /// The helper of a name.
    pub fn by_name(name: &str) -> Option<&'static Helper> {
        BY_NAME.get(name).map(|place| &HELPERS[usize::from(*place)])
    }

    /// The helper of an id.
    pub fn by_id(id: u16) -> Option<&'static Helper> {
        HELPERS.get(usize::from(id).checked_sub(1)?)
    }

    /// The helper whose slow path has this name.
    pub fn of_slow_path(name: &str) -> Option<&'static Helper> {
        Helper::by_name(name.strip_prefix(SLOW_PATH)?).filter(|helper| helper.family().slow_path > 0)
    }

    /// Name of the function that is its slow path.
    pub fn slow_path_name(&self) -> String {
        format!("{SLOW_PATH}{}", self.name)
    }

    /// The category of its id.
    pub fn category(&self) -> &'static Category {
        &CATEGORIES[usize::from(self.category)]
    }

    /// The family that it is generated from.
    pub fn family(&self) -> &'static Family {
        &FAMILIES[usize::from(self.family)]
    }

    /// Whether it is called or inlined.
    pub fn tier(&self) -> Tier {
        self.category().tier
    }

    /// Whether it has a body.
    pub fn built(&self) -> bool {
        self.family().planned.is_none()
    }

    /// Whether code for the target in this column uses it.
    pub fn used_on(&self, column: u32) -> bool {
        self.family().columns >> column & 1 != 0
    }
}

include!(concat!(env!("OUT_DIR"), "/helpers.rs"));
