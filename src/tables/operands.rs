//! Recipes of the operand legalizer, and the moves that bring a value into a register.

use super::{Mod, Op, Role};

/// The seven categories of recipes. Source: seed 003, operand legalization dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Fixed operands.
    A,
    /// As many words as the instruction has.
    B,
    /// Handed to the backend.
    C,
    /// The operation itself is rewritten.
    D,
    /// Optional operands.
    E,
    /// An access to memory.
    F,
    /// Nothing to do.
    G,
}

/// The six materializers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Material {
    /// A general register, unless the encoding takes the operand.
    Mat,
    /// The same, but the last to go.
    Try,
    /// A register of another file, or a special one: stays.
    Special,
    /// An immediate of a width that the target decides.
    Arch,
    /// A predicate of the file that the encoding takes.
    Pred,
    /// A uniform register.
    Uniform,
}

/// What may be done to an instruction without a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Operands change places.
    Swap,
    /// The same, with the inputs of the truth table.
    Table,
    /// The same, with the comparison turned round.
    Mirror,
    /// The same, with the predicate inverted.
    Select,
    /// Both signs are turned.
    Sign,
}

/// One step of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub by: Material,
    pub role: Role,
    /// All words of the operand, as many as the instruction says.
    pub many: bool,
    /// Only where the instruction has the operand.
    pub optional: bool,
}

/// A recipe. Source: `ori/recipes.ron`.
#[derive(Debug, PartialEq)]
pub struct RecipeInfo {
    pub name: &'static str,
    pub category: Category,
    /// What of the backend says whether the steps are taken.
    pub hook: Option<Hook>,
    /// Destination and source of a move that may become another opcode.
    pub moves: Option<(Role, Role)>,
    pub steps: &'static [Step],
    pub exchanges: &'static [(Exchange, &'static [Role])],
}

/// What a value is before it is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Imm,
    Zero,
    Const,
    Special,
    R,
    UR,
    P,
    UP,
}

/// What stands in a role of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    To,
    From,
    NotFrom,
    True,
    False,
    Zero,
    Number(u32),
}

/// A way of a value into a register of a file. Source: `ori/moves.ron`.
#[derive(Debug)]
pub struct MoveInfo {
    /// Name of the file.
    pub to: &'static str,
    pub from: Origin,
    pub op: Op,
    pub mods: &'static [(Mod, u8)],
    pub args: &'static [(Role, Part)],
}

impl Op {
    /// What the operand legalizer does with its operands.
    pub fn recipe(self) -> &'static RecipeInfo {
        &RECIPES[self.info().recipe]
    }
}

include!(concat!(env!("OUT_DIR"), "/operands.rs"));
