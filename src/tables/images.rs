//! The driver's functions for textures and surfaces, on targets without opcodes for them.
//!
//! A call keeps what every function of the driver keeps, and has arguments at places of its own;
//! the first one is a word that says what is asked for.

use super::ptx::{Geometry, ScalarType};

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `tex`, `tex.base`, `tex.level`
    ReadLevel,
    /// `tex.grad`
    ReadGradients,
    /// `tex.grad` of three dimensions and of cubes, on targets with opcodes for the others
    VolumeGradients,
    /// `tld4`
    Gather,
    /// `txq` and `suq` of sizes
    Query,
    /// `suld`
    Load,
    /// `sust`
    Store,
    /// `sured`
    Reduce,
}

/// Where an argument or a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Register(u16),
    /// Bytes from the stack pointer.
    Stack(u16),
}

/// A function. Source: a row of `lowering/image_calls.ron`.
#[derive(Debug)]
pub struct Function {
    pub what: Call,
    pub name: &'static str,
    /// `None`: it is for all.
    pub geometry: Option<Geometry>,
    /// The type of the components; `None`: it is for all.
    pub element: Option<ScalarType>,
    /// In the order of the places.
    pub args: &'static [(Argument, Place)],
    pub results: &'static [(Argument, Place)],
    /// What `.nv.prototype` of an object says of it; empty: nothing.
    pub prototype: &'static str,
}

/// What a word is given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Read,
    Query,
    Access,
    Reduce,
}

/// What bits of a word say. Source: the legend of `lowering/image_words.ron`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Always,
    Floats,
    IntegerLevel,
    OwnSampler,
    Offsets,
    Resident,
    GatherRed,
    GatherGreen,
    GatherBlue,
    GatherAlpha,
    Red,
    Green,
    Blue,
    Alpha,
    Width,
    Height,
    Depth,
    Clamp,
    Trap,
    Zero,
    Bits8,
    Bits16,
    Bits32,
    Bits64,
    Bits128,
    ByBytes,
    Packed,
    AnyU32,
    S32,
    U64,
    S64,
    Element32,
    Element64,
    Add,
    Min,
    Max,
    And,
    Or,
}

/// The components of a texel, in their order, and the same of a gather.
pub const COMPONENTS: [Part; 4] = [Part::Red, Part::Green, Part::Blue, Part::Alpha];
pub const GATHERED: [Part; 4] = [Part::GatherRed, Part::GatherGreen, Part::GatherBlue, Part::GatherAlpha];

/// A field of a word, with one value.
#[derive(Debug)]
struct Field {
    of: Word,
    part: Part,
    mask: u32,
    bits: u32,
}

impl Call {
    /// The word that the function is given, if it is one for many purposes.
    pub fn word(self) -> Option<Word> {
        match self {
            Call::ReadLevel | Call::ReadGradients | Call::Gather => Some(Word::Read),
            Call::VolumeGradients => None,
            Call::Query => Some(Word::Query),
            Call::Load | Call::Store => Some(Word::Access),
            Call::Reduce => Some(Word::Reduce),
        }
    }
}

impl Function {
    /// The function that does something for a geometry.
    pub fn of(what: Call, geometry: Geometry) -> Option<&'static Function> {
        FUNCTIONS.iter().find(|f| f.what == what && f.geometry.is_none_or(|own| own == geometry))
    }

    /// The function for a geometry and a type of components that has these of the arguments and
    /// results that not all functions have.
    pub fn with(
        what: Call,
        geometry: Geometry,
        element: ScalarType,
        optional: &[(Argument, bool)],
    ) -> Option<&'static Function> {
        let has = |f: &Function, of: Argument| f.args.iter().chain(f.results).any(|(own, _)| *own == of);
        let takes = |f: &Function| optional.iter().all(|(argument, taken)| has(f, *argument) == *taken);
        let one = |f: &&Function| f.what == what && f.geometry == Some(geometry) && f.element == Some(element);
        FUNCTIONS.iter().find(|f| one(f) && takes(f))
    }

    /// The function of a name, and its number in the table.
    pub fn by_name(name: &str) -> Option<(usize, &'static Function)> {
        FUNCTIONS.iter().enumerate().find(|(_, f)| f.name == name)
    }

    /// Where an argument is.
    pub fn place(&self, argument: Argument) -> Option<Place> {
        self.args.iter().find(|(own, _)| *own == argument).map(|(_, place)| *place)
    }
}

impl Word {
    fn field(self, part: Part) -> Option<&'static Field> {
        FIELDS.iter().find(|field| field.of == self && field.part == part)
    }

    /// The bits that say all this; `None` if a word of this kind has no bits for a part.
    pub fn bits(self, parts: &[Part]) -> Option<u32> {
        let always = self.field(Part::Always)?.bits;
        parts.iter().try_fold(always, |bits, part| Some(bits | self.field(*part)?.bits))
    }

    /// Whether a word says this.
    pub fn says(self, word: u32, part: Part) -> bool {
        self.field(part).is_some_and(|field| word & field.mask == field.bits)
    }

    /// The bits of a word that no row knows.
    pub fn unknown(self, word: u32) -> u32 {
        FIELDS.iter().filter(|field| field.of == self).fold(word, |rest, field| rest & !field.mask)
    }
}

include!(concat!(env!("OUT_DIR"), "/images.rs"));
