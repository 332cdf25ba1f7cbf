//! PTX operations, types, modifiers, special registers and instruction forms.
//!
//! The enums and rows are generated; this file has the row types and their accessors.

use super::elf::AttributeValue;

/// An instruction form, by its index in [`FORMS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u16);

/// Lowest PTX version and lowest `.target` number (0: any) that something requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    pub ptx: (u32, u32),
    pub sm: u32,
}

/// The interpretation of a type's values.
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
    /// Only converted from and to; no arithmetic.
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
    /// Lowest PTX version in which a variable may have the type.
    declared: (u32, u32),
}

/// A row of `special_registers.ron`.
#[derive(Debug)]
pub struct SpecialInfo {
    /// Type of one element.
    pub ty: ScalarType,
    /// Smallest width in bits of a destination.
    pub least: u32,
    /// Elements: 4 for `%tid`, 1 for `%tid.x`.
    pub vector: u32,
    pub needs: Needs,
}

/// A row of `groups.ron`: the texts by number, and messages with placeholders `{op}` and `{text}`;
/// an empty message stands for the general wording.
#[derive(Debug)]
pub struct GroupInfo {
    pub texts: &'static [&'static str],
    /// Texts that must directly follow the operation, one bit each.
    pub first: u32,
    /// Texts that may be repeated, one bit each.
    pub again: u32,
    /// The group that it must precede if an instruction has both.
    pub before: Option<Group>,
    /// Message if the group is required and absent.
    pub missing: &'static str,
    /// Message if the group is not allowed.
    pub illegal: &'static str,
    /// Message if the group is allowed only with other texts or types.
    pub wrong: &'static str,
    /// Message if the group occurs twice.
    pub twice: &'static str,
}

/// A name of an operation whose last part may be anywhere among the modifiers.
#[derive(Debug)]
pub struct FreeName {
    /// The last part, without its dot.
    pub last: &'static str,
    /// The whole name.
    pub name: &'static str,
    pub op: Op,
}

/// The texts of a group that a form accepts.
#[derive(Debug)]
pub struct Rule {
    pub group: Group,
    /// One bit for each text.
    pub mask: u32,
    /// Whether one of the texts must be present.
    pub required: bool,
}

/// The type of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgType {
    /// The role alone determines what is accepted.
    Untyped,
    /// The type suffix with this index.
    Suffix(usize),
    /// Twice the width of the first suffix.
    Wide,
    Fixed(ScalarType),
}

impl Modifiers {
    /// Columns and depth of a product of a warp group, of which `m64nNkK` is the shape.
    pub fn group_shape(&self) -> Option<(u32, u32)> {
        let names = [
            self.group_k8.map(|shape| shape.name()),
            self.group_k16.map(|shape| shape.name()),
            self.group_k32.map(|shape| shape.name()),
            self.group_k64.map(|shape| shape.name()),
            self.group_k256.map(|shape| shape.name()),
        ];
        let (columns, depth) = names.into_iter().flatten().next()?.strip_prefix("m64n")?.split_once('k')?;
        Some((columns.parse().ok()?, depth.parse().ok()?))
    }

    /// Dimensions of a tensor; 0 without `.Nd`.
    pub fn dimensions(&self) -> usize {
        self.tensor_dim.map_or(0, |dim| usize::from(dim.name().as_bytes()[0] - b'0'))
    }

    /// Coordinates of a box of a tensor: of its corner, or of a column and four rows.
    pub fn coordinates(&self) -> usize {
        match self.tensor_mode {
            Some(TensorMode::TileGather4 | TensorMode::TileScatter4) => ROW_COORDINATES,
            _ => self.dimensions(),
        }
    }

    /// Offsets of the pixels that a box of a tensor is made of.
    pub fn tensor_offsets(&self) -> usize {
        match self.tensor_mode {
            Some(TensorMode::Im2colW | TensorMode::Im2colW128) => PIXEL_OFFSETS,
            _ => self.dimensions().saturating_sub(CHANNEL_AND_BATCH),
        }
    }
}

impl Geometry {
    /// Coordinates, without the layer and the sample.
    pub fn dimensions(self) -> usize {
        match self.name().bytes().find(u8::is_ascii_digit) {
            Some(digit) => usize::from(digit - b'0'),
            None => CUBE_COORDINATES,
        }
    }

    /// Whether the coordinates begin with a layer.
    pub fn has_layers(self) -> bool {
        self.name().starts_with('a')
    }

    /// Whether it is a cube.
    pub fn is_cube(self) -> bool {
        self.name().ends_with("cube")
    }

    /// Whether the coordinates begin with the number of a sample.
    pub fn is_multisample(self) -> bool {
        self.name().ends_with("ms")
    }

    /// Numbers in front of the coordinates: a sample and a layer.
    pub fn indices(self) -> usize {
        usize::from(self.has_layers()) + usize::from(self.is_multisample())
    }
}

/// Coordinates of a direction.
const CUBE_COORDINATES: usize = 3;
/// A column and four rows.
const ROW_COORDINATES: usize = 5;
/// A halo and an offset.
const PIXEL_OFFSETS: usize = 2;
/// The dimensions of an image that have no offset.
const CHANNEL_AND_BATCH: usize = 2;

impl Arg {
    /// Registers of a fragment in an instruction with these modifiers; 0 where the role is none.
    pub fn registers(&self, mods: &Modifiers) -> usize {
        let count = usize::from(self.count);
        match (self.by_shape, mods.group_shape()) {
            (false, _) => count,
            (true, shape) => shape.map_or(0, |(columns, _)| columns as usize / count.max(1)),
        }
    }
}

/// An operand of a form.
#[derive(Debug)]
pub struct Arg {
    pub role: Role,
    pub ty: ArgType,
    /// Registers of a fragment; 0 for another role.
    pub count: u8,
    pub by_shape: bool,
    pub optional: bool,
}

/// A row of `forms/`.
#[derive(Debug)]
pub struct Form {
    pub op: Op,
    pub rules: &'static [Rule],
    /// For each type suffix, the allowed types, one bit each.
    pub types: &'static [u64],
    pub args: &'static [Arg],
    /// Index of an address that no register narrower than 32 bits may be.
    pub whole: Option<u8>,
    pub needs: Needs,
    /// Columns of the targets that have it, if fewer than `needs` implies.
    pub on: Option<u128>,
    /// What is said on the others, `{target}` for the target; empty: the general words.
    pub refused: &'static str,
}

/// A row of `vectors.ron`: how wide a vector of a load or store may be.
#[derive(Debug)]
pub struct VectorInfo {
    /// Width of the whole vector.
    pub bits: u32,
    /// One bit per text of the modifier group `space`, and one for generic addresses; 0: all.
    pub spaces: u32,
    pub needs: Needs,
}

/// A row of `fields.ron`: a field of the initialiser of a reference.
#[derive(Debug)]
pub struct FieldInfo {
    pub name: &'static str,
    /// The types of references that have it.
    pub of: &'static [ScalarType],
    /// The attribute that has its value; `None`: nothing has it.
    pub record: Option<AttributeValue>,
    /// The byte of that attribute's value, or 4: all of it.
    pub byte: u8,
}

/// A row of `field_values.ron`: a name for a value of a field.
#[derive(Debug)]
pub struct FieldValue {
    pub name: &'static str,
    /// The number that the name stands for.
    pub value: u32,
    /// What stands for it in a byte of an attribute.
    pub setting: u8,
}

/// A row of `directives.ron`: its requirements, and whether it is allowed on entries, on device
/// functions and prototypes, or as a pragma of functions and of the module.
#[derive(Debug)]
pub struct DirectiveInfo {
    pub needs: Needs,
    pub entry: bool,
    pub function: bool,
    pub pragma: bool,
    pub module: bool,
    /// PTX versions from which on it is deprecated and has no effect, and from which on it is
    /// rejected.
    pub gone: Option<[(u32, u32); 2]>,
}

/// A row of `ranges.ron` for one operation: the range of an integer constant.
#[derive(Debug)]
pub struct ArgRange {
    /// Index of the operand, from 0.
    pub arg: u32,
    /// The instruction must have one modifier or type of each list.
    pub with: &'static [&'static [&'static str]],
    /// The allowed values.
    pub is: &'static [Span],
    /// The error message; empty for the general wording.
    pub says: &'static str,
}

/// A range of a constant operand.
#[derive(Clone, Copy, Debug)]
pub enum Span {
    /// Multiples of `step` from `low` to `high`.
    Integers { low: i64, high: i64, step: i64 },
    /// From `low` to the constant operand `arg`; any number if that operand is not a constant.
    UpTo { low: i64, arg: u32 },
    /// Greater than `above` and at most `high`.
    Reals { above: f64, high: f64 },
}

/// A row of `requirements.ron` for one operation.
#[derive(Debug)]
pub struct Requirement {
    /// Group and number of the modifier text; `None`: any modifiers.
    pub text: Option<(Group, u8)>,
    /// The first types it applies to, one bit each; 0: all.
    pub types: u64,
    pub needs: Needs,
    /// What requires it, as the message names it; empty: the modifier or the type.
    pub says: &'static str,
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

    /// The interpretation of its values.
    pub fn class(self) -> TypeClass {
        TYPES[self as usize].class
    }

    /// The type of a suffix without its dot.
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

    /// Type, number of elements, requirements.
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

    /// For a deprecated operation, the version and target from which on (both together) it is
    /// removed.
    pub fn gone(self) -> Option<Needs> {
        GONE[self as usize]
    }

    /// Whether its address in generic or global space has 64 bits, so that a register of 32 bits
    /// there makes the program one of 32-bit addresses.
    pub fn has_wide_address(self) -> bool {
        WIDE[self as usize]
    }

    /// The ISA class in `.nv.compat` that a module with it has at least; `integers` says that it
    /// is a product of integers in tensor memory.
    pub fn isa_class(self, integers: bool) -> u8 {
        let (other, of_integers) = ISA[self as usize];
        if integers { of_integers } else { other }
    }

    /// How a module with it uses tensor maps, as `.nv.compat` says it: 1 reads, 2 changes them.
    pub fn uses_of_maps(self) -> u8 {
        MAPS[self as usize]
    }

    /// Whether it is about tensor memory.
    pub fn is_of_tensor_memory(self) -> bool {
        TENSOR_MEMORY[self as usize]
    }

    /// Whether it is about matrices that a warp holds in an order of the target's own (`wmma`).
    pub fn is_of_fragments(self) -> bool {
        FRAGMENTS[self as usize]
    }

    /// The ranges of its constant operands.
    pub fn ranges(self) -> &'static [ArgRange] {
        let (start, end) = RANGES_OF[self as usize];
        &RANGES[usize::from(start)..usize::from(end)]
    }

    /// The requirements of its modifiers and types.
    pub fn requirements(self) -> &'static [Requirement] {
        let (start, end) = REQUIREMENTS_OF[self as usize];
        &REQUIREMENTS[usize::from(start)..usize::from(end)]
    }
}

impl Limit {
    /// The largest limit whose requirements `has` accepts, in bytes.
    pub fn bytes(self, has: impl Fn(Needs) -> bool) -> u64 {
        let rows = LIMITS.iter().filter(|(limit, _, needs)| *limit == self && has(*needs));
        rows.map(|(_, value, _)| *value).max().unwrap_or(0)
    }

    /// The requirements for the largest limit.
    pub fn needs(self) -> Needs {
        let rows = LIMITS.iter().filter(|(limit, _, _)| *limit == self);
        rows.max_by_key(|(_, value, _)| *value).map_or(Needs { ptx: (0, 0), sm: 0 }, |(_, _, needs)| *needs)
    }
}

impl RowId {
    /// The row of this id.
    pub fn form(self) -> &'static Form {
        &FORMS[usize::from(self.0)]
    }
}

include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
