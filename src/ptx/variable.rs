//! Parses variable declarations: attributes, dimensions, layout.
//!
//! A declaration yields symbols of kind `Variable`, or registers. Sizes do not overflow and are at
//! most [`MAX_SIZE`].

use super::ast::{Linkage, PointerAttributes, Register, SymbolId, SymbolKind, Variable};
use super::lexer::{Tok, Token};
use super::parser::{Parse, Parser};
use crate::diag::Pos;
use crate::tables::ptx::{Limit, ScalarType, Space, TypeClass, VECTORS};
use cranelift_entity::EntityRef;
use smallvec::SmallVec;

/// Largest size of a variable, in bytes.
pub const MAX_SIZE: u64 = 1 << 40;

/// Largest number of array dimensions, which also limits the nesting of an initialiser.
const MAX_DIMENSIONS: usize = 16;

/// The part of a declaration before the names.
#[derive(Clone, Debug)]
pub struct Head {
    pub pos: Pos,
    /// `None`: `.reg`.
    pub space: Option<Space>,
    pub ty: ScalarType,
    /// Elements of the vector type: 1, 2, 4.
    pub vector: u32,
    /// In bytes; `None`: the natural alignment.
    pub align: Option<u64>,
    pub pointer: Option<PointerAttributes>,
    managed: bool,
    unified: Option<(u64, u64)>,
}

impl<'a> Parser<'a> {
    /// `.space attributes type name…;`: returns the new symbols. `.reg` declares registers instead.
    pub fn variables(&mut self, linkage: Linkage, at_module: bool) -> Parse<Vec<SymbolId>> {
        let head = self.head()?;
        let mut made = Vec::new();
        loop {
            let name = self.expect_ident()?;
            if self.is_sign("<") {
                self.family(&head, linkage, name, at_module)?;
            } else if head.space.is_some() {
                let before = self.module.symbols.len();
                let symbol = self.variable(&head, linkage, name, at_module)?;
                // A definition of a declared variable reuses its symbol, which is in the list
                // already.
                made.extend((symbol.index() >= before).then_some(symbol));
            } else {
                self.register(&head, name)?;
            }
            if !self.accept_sign(",") {
                break;
            }
        }
        self.expect_sign(";")?;
        Ok(made)
    }

    /// State space, attributes and type: the width of a vector directly in front of the type, and
    /// behind it only what an entry's parameter may have.
    pub fn head(&mut self) -> Parse<Head> {
        let token = self.peek();
        let space = match self.text(token) {
            ".reg" => None,
            ".global" => Some(Space::Global),
            ".const" => Some(Space::Const),
            ".shared" => Some(Space::Shared),
            ".local" => Some(Space::Local),
            ".param" => Some(Space::Param),
            _ => return Err(self.unexpected()),
        };
        self.next();
        let pos = token.pos;
        let mut ty = None;
        let mut head = Head {
            pos,
            space,
            ty: ScalarType::B8,
            vector: 1,
            align: None,
            pointer: None,
            managed: false,
            unified: None,
        };
        while self.peek().tok == Tok::Dot {
            self.attribute(&mut head, &mut ty)?;
        }
        let Some(ty) = ty else { return Err(self.unexpected()) };
        if ty == ScalarType::Samplerref && !self.module.target.independent_textures {
            self.error(pos, "Instruction or declaration violates .target texmode_unified setting");
        }
        let (major, minor) = ty.declared_since();
        if self.module.version < (major, minor) {
            let what = format!("Feature 'Type .{}'", ty.name());
            self.error(pos, format!("{what} requires PTX ISA .version {major}.{minor} or later"));
        }
        let widest = VECTORS.first().map_or(u32::MAX, |v| v.bits);
        if head.vector > 1 && head.vector * ty.bits() > widest {
            self.error(pos, format!("Vector type too large, exceeds {widest} bit limit"));
        }
        Ok(Head { ty, ..head })
    }

    fn attribute(&mut self, head: &mut Head, ty: &mut Option<ScalarType>) -> Parse<()> {
        let text = self.text(self.peek());
        let stands = match text {
            ".align" => ty.is_none() && head.vector == 1 || head.space == Some(Space::Param) && head.pointer.is_none(),
            ".v2" | ".v4" | ".attribute" => ty.is_none() && head.vector == 1,
            ".ptr" => ty.is_some() && head.pointer.is_none(),
            _ => true,
        };
        if !stands {
            return Err(self.unexpected());
        }
        match text {
            ".align" => {
                self.next();
                head.align = Some(self.alignment()?);
            }
            ".v2" | ".v4" => {
                self.next();
                head.vector = if text == ".v2" { 2 } else { 4 };
            }
            ".ptr" => head.pointer = Some(self.pointer()?),
            ".attribute" => self.variable_attribute(head)?,
            _ => match ScalarType::by_name(&text[1..]) {
                Some(found) if ty.is_none() => {
                    self.next();
                    *ty = Some(found);
                }
                _ => return Err(self.unexpected()),
            },
        }
        Ok(())
    }

    fn alignment(&mut self) -> Parse<u64> {
        let pos = self.pos();
        let value = u64::from(self.plain()?);
        if !value.is_power_of_two() {
            self.error(pos, "Alignment must be a power of two");
            return Ok(1);
        }
        let most = Limit::Alignment.bytes(|_| true);
        if value > most {
            self.error(pos, format!("Alignment {value} is not supported, {most} is the greatest"));
            return Ok(most);
        }
        Ok(value)
    }

    /// `.ptr [.space] [.align n]`
    fn pointer(&mut self) -> Parse<PointerAttributes> {
        self.next();
        let space = match self.text(self.peek()) {
            ".global" => Some(Space::Global),
            ".const" => Some(Space::Const),
            ".shared" => Some(Space::Shared),
            ".local" => Some(Space::Local),
            _ => None,
        };
        if space.is_some() {
            self.next();
        }
        let align = if self.accept_dot(".align") { self.alignment()? } else { 4 };
        Ok(PointerAttributes { space, align })
    }

    /// `.attribute(.managed, .unified(a, b))`
    fn variable_attribute(&mut self, head: &mut Head) -> Parse<()> {
        self.next();
        self.expect_sign("(")?;
        loop {
            if self.accept_dot(".managed") {
                head.managed = true;
            } else if self.is_dot(".unified") {
                head.unified = Some(self.unified()?);
            } else {
                return Err(self.unexpected());
            }
            if !self.accept_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        Ok(())
    }

    /// `.unified(a, b)`
    pub fn unified(&mut self) -> Parse<(u64, u64)> {
        self.next();
        self.expect_sign("(")?;
        let first = self.integer()? as u64;
        self.expect_sign(",")?;
        let second = self.integer()? as u64;
        self.expect_sign(")")?;
        Ok((first, second))
    }

    /// Reports attributes that a register cannot have.
    pub fn check_register(&mut self, head: &Head) {
        if head.vector > 1 && head.ty.class() == TypeClass::Predicate {
            self.error(head.pos, "Predicate type can only be used to define scalar register variables");
        }
    }

    /// `name` of a `.reg`.
    fn register(&mut self, head: &Head, name: Token) -> Parse<()> {
        self.check_register(head);
        let text = self.text(name);
        let register = Register { name: text.into(), ty: head.ty, vector: head.vector, pos: name.pos };
        if self.body.declare_register(text, register).is_none() {
            self.error(name.pos, format!("Duplicate definition of variable '{text}'"));
        }
        Ok(())
    }

    /// One name of a declaration with its dimensions and initialiser.
    fn variable(&mut self, head: &Head, linkage: Linkage, name: Token, at_module: bool) -> Parse<SymbolId> {
        let mut variable = self.layout(head, name)?;
        variable.linkage = linkage;
        let text = self.text(name);
        if self.accept_sign("=") {
            if !matches!(variable.space, Space::Global | Space::Const) {
                self.error(name.pos, format!("No initial value is allowed for '{text}' in this state space"));
            } else if linkage == Linkage::Extern {
                self.error(name.pos, format!("No initial value is allowed for external symbol '{text}'"));
            }
            self.initializer(&mut variable)?;
        }
        let open = variable.dimensions.iter().any(|d| d.is_none_or(|n| n == 0));
        if open && linkage != Linkage::Extern {
            self.error(name.pos, format!("Non-external variable '{text}' has incomplete type"));
        }
        Ok(self.declare_variable(variable, name, at_module))
    }

    /// Dimensions, size and alignment of a variable or parameter whose name has just been read.
    pub fn layout(&mut self, head: &Head, name: Token) -> Parse<Variable> {
        let dimensions = self.dimensions()?;
        if head.ty.class() == TypeClass::Predicate {
            let text = self.text(name);
            self.error(name.pos, format!("Predicate variable '{text}' must be in register state space"));
        }
        if head.vector > 1 && head.space == Some(Space::Param) {
            let text = self.text(name);
            self.error(name.pos, format!("Variable '{text}' cannot be allocated in .param state space"));
        }
        let element = u64::from(head.ty.bits().div_ceil(8)) * u64::from(head.vector);
        let count = dimensions.iter().try_fold(1u64, |n, d| n.checked_mul(d.unwrap_or(0)));
        let size = count.and_then(|n| n.checked_mul(element)).filter(|n| *n <= MAX_SIZE);
        let Some(size) = size else {
            return Err(self.error(name.pos, format!("Variable '{}' is too large", self.text(name))));
        };
        Ok(Variable {
            linkage: Linkage::Internal,
            space: head.space.unwrap_or(Space::Param),
            ty: head.ty,
            vector: head.vector,
            dimensions,
            align: head.align.unwrap_or(element),
            size,
            pointer: head.pointer,
            managed: head.managed,
            unified: head.unified,
            init: Vec::new(),
            fields: Vec::new(),
        })
    }

    fn dimensions(&mut self) -> Parse<SmallVec<[Option<u64>; 1]>> {
        let mut dimensions = SmallVec::new();
        while self.is_sign("[") {
            let pos = self.next().pos;
            if self.is_sign("]") && dimensions.is_empty() {
                self.next();
                dimensions.push(None);
            } else {
                if matches!(self.text(self.peek()), "-" | "~" | "!") {
                    return Err(self.unexpected());
                }
                let value = self.integer()?;
                dimensions.push(Some(value.max(0) as u64));
                self.expect_sign("]")?;
            }
            if dimensions.len() > MAX_DIMENSIONS {
                return Err(self.error(pos, format!("More than {MAX_DIMENSIONS} array dimensions")));
            }
        }
        Ok(dimensions)
    }

    fn declare_variable(&mut self, variable: Variable, name: Token, at_module: bool) -> SymbolId {
        let text = self.text(name);
        if at_module && let Some(old) = self.redeclared(text, &variable) {
            return old;
        }
        let symbol = self.new_symbol(text, name.pos, SymbolKind::Variable(Box::new(variable)));
        let fresh = if at_module {
            !self.families.declares(text) && self.names.insert(text, symbol).is_none()
        } else {
            self.body.declare_symbol(text, symbol)
        };
        if !fresh {
            self.error(name.pos, format!("Duplicate definition of variable '{text}'"));
        }
        symbol
    }

    /// The earlier declaration that this one repeats, if one of the two is `.extern`. An `.extern`
    /// one is overwritten by this one.
    fn redeclared(&mut self, name: &str, new: &Variable) -> Option<SymbolId> {
        let id = *self.names.get(name)?;
        let SymbolKind::Variable(old) = &mut self.module.symbols[id].kind else { return None };
        let same = old.space == new.space && old.ty == new.ty && old.vector == new.vector;
        if !same || (old.linkage != Linkage::Extern && new.linkage != Linkage::Extern) {
            return None;
        }
        if old.linkage == Linkage::Extern {
            **old = new.clone();
        }
        Some(id)
    }

    /// `+n`, or nothing.
    pub fn symbol_offset(&mut self) -> Parse<i64> {
        if self.is_sign("-") {
            return Err(self.unexpected());
        }
        if self.accept_sign("+") { self.integer() } else { Ok(0) }
    }
}
