//! Parses the module level: the header directives and the list of items.
//!
//! An error in one item does not hide errors in the next: parsing resumes after the item.

use super::ast::{DebugSection, File, Linkage, Pragma, Symbol, SymbolId, SymbolKind, Target as AstTarget};
use super::lexer::Tok;
use super::parser::{Parse, Parser};
use super::requirements::{Subject, pragma_name};
use crate::diag::{Diagnostic, Pos, Severity};
use crate::tables::Target;
use crate::tables::ptx::VERSIONS;
use cranelift_entity::EntityRef;

impl<'a> Parser<'a> {
    /// Parses the whole file.
    pub fn file(&mut self) {
        if self.header().is_err() {
            return;
        }
        while self.peek().tok != Tok::End && !self.given_up() {
            let before = self.progress();
            if self.item().is_err() {
                self.recover_item();
            }
            if self.progress() == before {
                self.next();
            }
        }
    }

    /// `.version`, `.target` and `.address_size`.
    fn header(&mut self) -> Parse<()> {
        let pos = self.pos();
        if !self.accept_dot(".version") {
            return Err(self.syntax(pos, "Missing .version directive at start of file"));
        }
        let version_pos = self.pos();
        let token = self.next();
        let Some(version) = version_of(self.text(token)).filter(|_| token.tok == Tok::Float) else {
            return Err(self.syntax(version_pos, "Missing .version directive at start of file"));
        };
        let current = VERSIONS.last().copied().unwrap_or_default();
        if !VERSIONS.contains(&version) {
            let ((a, b), (c, d)) = (version, current);
            return Err(self.syntax(version_pos, format!("Unsupported .version {a}.{b}; current version is '{c}.{d}'")));
        }
        self.module.version = version;
        let pos = self.pos();
        if !self.accept_dot(".target") {
            return Err(self.syntax(pos, "Missing .target directive at start of file"));
        }
        // The last of several `.target` lines counts.
        self.target()?;
        while self.accept_dot(".target") {
            self.target()?;
        }
        self.check_target_version();
        self.is_sized = self.accept_dot(".address_size");
        if self.is_sized {
            self.address_size()?;
        }
        Ok(())
    }

    fn target(&mut self) -> Parse<()> {
        loop {
            let token = self.expect_ident()?;
            let (text, target) = (self.text(token), &mut self.module.target);
            match text {
                "texmode_independent" => target.independent_textures = true,
                "texmode_unified" => target.independent_textures = false,
                "debug" => target.debug = true,
                "map_f64_to_f32" => {
                    self.module.target.map_f64_to_f32 = true;
                    self.error(token.pos, "Directive map_f64_to_f32 is not supported with SM 1.3 or higher");
                }
                _ => *target = AstTarget { name: text.into(), pos: token.pos, ..target.clone() },
            }
            if !self.accept_sign(",") {
                break;
            }
        }
        let (name, pos) = (&self.module.target.name, self.module.target.pos);
        let Some(target) = Target::of_source(name) else {
            return Err(self.syntax(pos, format!("Unsupported .target '{name}'")));
        };
        self.target_row = Some(target);
        Ok(())
    }

    fn check_target_version(&mut self) {
        let ((major, minor), Some(target)) = (self.module.version, self.target_row) else { return };
        if target.min_ptx > (major, minor) {
            let name = &self.module.target.name;
            let text = format!("PTX .version {major}.{minor} does not support .target {name}");
            self.error(self.module.target.pos, text);
        }
    }

    fn address_size(&mut self) -> Parse<()> {
        let pos = self.pos();
        match self.small()? {
            64 => {}
            32 => _ = self.error(pos, "32-Bit compilation is no longer supported"),
            _ => _ = self.error(pos, "Illegal value for .address_size directive (must be 32 or 64)"),
        }
        Ok(())
    }

    fn item(&mut self) -> Parse<()> {
        let token = self.peek();
        if token.tok == Tok::Dwarf {
            self.next();
            let line = self.text(token).to_string();
            self.module.debug_sections.push(DebugSection { name: "@@DWARF".into(), lines: vec![line] });
            return Ok(());
        }
        if token.tok != Tok::Dot {
            return Err(self.unexpected());
        }
        match self.text(token) {
            ".file" => self.file_directive(),
            ".section" => self.section(),
            ".pragma" => {
                let pragma = self.pragma(false)?;
                self.module.pragmas.push(pragma);
                Ok(())
            }
            ".alias" => self.alias(),
            ".loc" => self.location().map(drop),
            _ => self.declaration(),
        }
    }

    /// A function or a variable, with its linkage.
    fn declaration(&mut self) -> Parse<()> {
        let linkage = self.linkage();
        let token = self.peek();
        match self.text(token) {
            ".entry" => self.function(linkage),
            ".func" if linkage != Linkage::Common => self.function(linkage),
            ".reg" => {
                Err(self.error(token.pos, "Module-scoped variables in .reg state space are not allowed with ABI"))
            }
            ".local" => {
                Err(self.error(token.pos, "Module-scoped variables in .local state space are not allowed with ABI"))
            }
            ".param" => Err(self.error(token.pos, "Parameter variables may not be declared at module scope")),
            ".global" | ".const" | ".shared" => {
                let known = self.module.symbols.len();
                let made = self.variables(linkage, true)?;
                // A definition of a declared variable reuses the symbol.
                self.module.globals.extend(made.into_iter().filter(|id| id.index() >= known));
                Ok(())
            }
            _ => Err(self.unexpected()),
        }
    }

    fn linkage(&mut self) -> Linkage {
        let linkage = match self.text(self.peek()) {
            ".visible" => Linkage::Visible,
            ".extern" => Linkage::Extern,
            ".weak" => Linkage::Weak,
            ".common" => Linkage::Common,
            _ => return Linkage::Internal,
        };
        self.next();
        linkage
    }

    /// `.pragma "text", …;`, inside a function or outside. An unknown pragma is an error outside,
    /// and a warning in a function that is compiled.
    pub fn pragma(&mut self, inside: bool) -> Parse<Pragma> {
        let pos = self.next().pos;
        let mut texts = vec![self.expect_string()?.to_string()];
        while self.accept_sign(",") {
            texts.push(self.expect_string()?.to_string());
        }
        self.expect_sign(";")?;
        for text in &texts {
            match pragma_name(text) {
                None if inside => {}
                None => {
                    let text = format!("Pragma '{text}' not supported");
                    self.diags.push(Diagnostic { severity: Severity::Error, ..Diagnostic::note(text) });
                }
                Some((_, info)) if !inside && !info.module => {
                    self.error(pos, format!("Pragma '{text}' is allowed only within function scope"));
                }
                Some((name, info)) => self.need(Subject::Feature(name, info.needs), pos),
            }
        }
        Ok(Pragma { texts, pos })
    }

    /// `.file index "name"[, time, size]`
    pub fn file_directive(&mut self) -> Parse<()> {
        self.next();
        let index = self.small()?;
        let name = self.expect_string()?.to_string();
        let (mut timestamp, mut size) = (None, None);
        if self.accept_sign(",") {
            timestamp = Some(self.integer()? as u64);
            self.expect_sign(",")?;
            size = Some(self.integer()? as u64);
        }
        self.module.files.push(File { index, name, timestamp, size });
        Ok(())
    }

    /// `.alias name, function;`
    fn alias(&mut self) -> Parse<()> {
        self.next();
        let name = self.module_symbol()?;
        self.expect_sign(",")?;
        let of = self.module_symbol()?;
        self.expect_sign(";")?;
        self.module.aliases.push((name, of));
        Ok(())
    }

    fn module_symbol(&mut self) -> Parse<SymbolId> {
        let token = self.expect_ident()?;
        let name = self.text(token);
        let found = self.names.get(name).copied();
        found.ok_or(()).map_err(|()| self.error(token.pos, format!("Unknown symbol '{name}'")))
    }

    /// `.section name { lines }`, kept as text.
    pub fn section(&mut self) -> Parse<()> {
        self.next();
        let token = self.next();
        if !matches!(token.tok, Tok::Dot | Tok::Ident) {
            return Err(self.unexpected());
        }
        let name = self.text(token).to_string();
        let open = self.expect_sign("{")?;
        while !self.is_sign("}") {
            if self.peek().tok == Tok::End {
                return Err(self.unexpected());
            }
            self.next();
        }
        let close = self.next();
        let inside = &self.source[open.start as usize + 1..close.start as usize];
        let lines = inside.lines().map(str::trim).filter(|l| !l.is_empty()).map(String::from).collect();
        self.module.debug_sections.push(DebugSection { name, lines });
        Ok(())
    }

    /// Adds a symbol to the module's table.
    pub fn new_symbol(&mut self, name: &str, pos: Pos, kind: SymbolKind) -> SymbolId {
        self.module.symbols.push(Symbol { name: name.into(), pos, kind })
    }

    /// After an error in an item: skips to behind the next `;` or `}` outside braces.
    fn recover_item(&mut self) {
        let mut depth = 0u32;
        loop {
            let token = self.next();
            match (token.tok, self.text(token)) {
                (Tok::End, _) => return,
                (Tok::Sign, "{") => depth += 1,
                (Tok::Sign, "}") => depth = depth.saturating_sub(1),
                (Tok::Sign, ";") => {}
                _ => continue,
            }
            if depth == 0 && self.text(token) != "{" {
                // The brace may have closed an initialiser.
                self.accept_sign(";");
                return;
            }
        }
    }
}

/// `major.minor`
fn version_of(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
