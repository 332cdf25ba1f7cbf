//! PTX operations, types, modifiers, special registers and instruction forms.
//!
//! The generated part has the enums and the rows; here are the types of the rows and what is asked of them.

/// A row of the instruction forms: its place in [`FORMS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u16);

/// Lowest PTX version and lowest `.target` number (0: any).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    pub ptx: (u32, u32),
    pub sm: u32,
}

/// How a type's values are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeClass {
    Unsigned,
    Signed,
    Bits,
    Float,
    /// Two packed floats.
    FloatVector,
    /// Two packed unsigned integers.
    UnsignedVector,
    /// Two packed signed integers.
    SignedVector,
    /// Converted from and to, without arithmetic.
    Narrow,
    Predicate,
    /// References to textures, samplers and surfaces.
    Opaque,
}

/// A row of `types.ron`.
#[derive(Debug)]
pub struct TypeInfo {
    bits: u32,
    class: TypeClass,
    /// Lowest PTX version of a declaration.
    declared: (u32, u32),
}

/// A row of `special_registers.ron`.
#[derive(Debug)]
pub struct SpecialInfo {
    pub ty: ScalarType,
    /// Fewest bits that it may be read in.
    pub least: u32,
    /// Elements: 4 for `%tid`, 1 for `%tid.x`.
    pub vector: u32,
    pub needs: Needs,
}

/// A row of `groups.ron`: the texts in the order of their numbers, and messages with `{op}` and `{text}` to fill in; an
/// empty one stands for the general wording.
#[derive(Debug)]
pub struct GroupInfo {
    pub texts: &'static [&'static str],
    /// The texts that stand directly behind the operation, one bit each.
    pub first: u32,
    /// The texts that may stand more than once, one bit each.
    pub again: u32,
    /// The group that it stands before where an instruction has both.
    pub before: Option<Group>,
    pub missing: &'static str,
    pub illegal: &'static str,
    pub wrong: &'static str,
    pub twice: &'static str,
}

/// A name of an operation whose last part stands anywhere among the modifiers.
#[derive(Debug)]
pub struct FreeName {
    pub last: &'static str,
    /// The name as a whole.
    pub name: &'static str,
    pub op: Op,
}

/// Which texts of a group a form takes.
#[derive(Debug)]
pub struct Rule {
    pub group: Group,
    /// One bit for each text.
    pub mask: u32,
    pub required: bool,
}

/// The type of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgType {
    /// The role says enough.
    Untyped,
    /// That of a type suffix, by number.
    Suffix(usize),
    /// Twice the width of the first suffix.
    Wide,
    Fixed(ScalarType),
}

/// An operand of a form.
#[derive(Debug)]
pub struct Arg {
    pub role: Role,
    pub ty: ArgType,
    /// Registers of a fragment; 0 where the role is none.
    pub count: u8,
    pub optional: bool,
}

/// A row of `forms/`.
#[derive(Debug)]
pub struct Form {
    pub op: Op,
    pub rules: &'static [Rule],
    /// For each suffix the types it may be, one bit each.
    pub types: &'static [u64],
    pub args: &'static [Arg],
    pub needs: Needs,
    /// Columns of the targets that have it, where not all that `needs` says do.
    pub on: Option<u128>,
}

/// A row of `vectors.ron`: how wide a vector of a load or store may be.
#[derive(Debug)]
pub struct VectorInfo {
    pub bits: u32,
    /// One bit for each text of the modifier group `space`, generic addresses besides; 0: all.
    pub spaces: u32,
    pub needs: Needs,
}

/// A row of `directives.ron`: what it needs, and whether it stands on entries or on device functions and prototypes, or is the text of
/// a pragma of functions, and of the module too.
#[derive(Debug)]
pub struct DirectiveInfo {
    pub needs: Needs,
    pub entry: bool,
    pub function: bool,
    pub pragma: bool,
    pub module: bool,
    /// From which PTX version on it is deprecated and does nothing, and from which it is refused.
    pub gone: Option<[(u32, u32); 2]>,
}

/// A row of `ranges.ron` for one operation: what an integer constant may be.
#[derive(Debug)]
pub struct ArgRange {
    /// Which operand, from 0.
    pub arg: u32,
    /// Of each list the instruction has one modifier or type.
    pub with: &'static [&'static [&'static str]],
    pub is: &'static [Span],
    /// The message; empty: the general wording.
    pub says: &'static str,
}

/// Numbers that a constant operand may be.
#[derive(Clone, Copy, Debug)]
pub enum Span {
    /// Multiples of `step` from `low` to `high`.
    Integers { low: i64, high: i64, step: i64 },
    /// From `low` to the constant that is operand `arg`; any number where that is none.
    UpTo { low: i64, arg: u32 },
    /// Above the one and up to the other.
    Reals { above: f64, high: f64 },
}

/// A row of `requirements.ron` for one operation.
#[derive(Debug)]
pub struct Requirement {
    /// Group and number of the text; `None`: whatever the modifiers.
    pub text: Option<(Group, u8)>,
    /// One bit for each first type that it holds for; 0: all.
    pub types: u64,
    pub needs: Needs,
}

impl ScalarType {
    /// Width of a value in bits.
    pub fn bits(self) -> u32 {
        TYPES[self as usize].bits
    }

    /// The lowest PTX version in which a variable may have it.
    pub fn declared_since(self) -> (u32, u32) {
        TYPES[self as usize].declared
    }

    /// How its values are understood.
    pub fn class(self) -> TypeClass {
        TYPES[self as usize].class
    }

    /// The type of a suffix, without its dot.
    pub fn by_name(name: &str) -> Option<ScalarType> {
        TYPE_BY_NAME.get(name).copied()
    }

    /// Its bit in a set of types.
    pub fn bit(self) -> u64 {
        1 << (self as u16)
    }
}

impl SpecialRegister {
    /// The special register of a name, without its `%`.
    pub fn by_name(name: &str) -> Option<SpecialRegister> {
        SPECIAL_BY_NAME.get(name).copied()
    }

    /// Type, elements, needs.
    pub fn info(self) -> &'static SpecialInfo {
        &SPECIALS[self as usize]
    }
}

impl Vector {
    /// Elements of `.v2`, `.v4`, `.v8`.
    pub fn elements(self) -> u32 {
        2 << self as u32
    }
}

impl Group {
    /// Texts and messages.
    pub fn info(self) -> &'static GroupInfo {
        &GROUPS[self as usize]
    }
}

impl Op {
    /// Its forms with their ids.
    pub fn forms(self) -> impl Iterator<Item = (RowId, &'static Form)> + Clone {
        let (start, end) = FORMS_OF[self as usize];
        (start..end).map(|i| (RowId(i), &FORMS[usize::from(i)]))
    }

    /// For a deprecated operation, the version and target from which on, both together, it is gone.
    pub fn gone(self) -> Option<Needs> {
        GONE[self as usize]
    }

    /// What its constant operands may be.
    pub fn ranges(self) -> &'static [ArgRange] {
        let (start, end) = RANGES_OF[self as usize];
        &RANGES[usize::from(start)..usize::from(end)]
    }

    /// What its modifiers and types need.
    pub fn requirements(self) -> &'static [Requirement] {
        let (start, end) = REQUIREMENTS_OF[self as usize];
        &REQUIREMENTS[usize::from(start)..usize::from(end)]
    }
}

impl Limit {
    /// The greatest size for a file of which `has` says what it suffices for; in bytes.
    pub fn bytes(self, has: impl Fn(Needs) -> bool) -> u64 {
        let rows = LIMITS.iter().filter(|(limit, _, needs)| *limit == self && has(*needs));
        rows.map(|(_, value, _)| *value).max().unwrap_or(0)
    }

    /// What a file must be for the greatest size of all.
    pub fn needs(self) -> Needs {
        let rows = LIMITS.iter().filter(|(limit, _, _)| *limit == self);
        rows.max_by_key(|(_, value, _)| *value).map_or(Needs { ptx: (0, 0), sm: 0 }, |(_, _, needs)| *needs)
    }
}

impl RowId {
    /// The row.
    pub fn form(self) -> &'static Form {
        &FORMS[usize::from(self.0)]
    }
}

include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
