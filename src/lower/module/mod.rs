//! Layout of a module: variables, sections, symbols, relocations.

pub(crate) mod layout;
pub(crate) mod name;
pub(crate) mod object_symbols;
pub(crate) mod relocs;
