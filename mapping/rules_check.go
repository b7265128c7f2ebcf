package mapping

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// Bounds of the events section.
const (
	maxRulesPerEntry = 1000
	maxTemplateDepth = 20
	maxMembers       = 1000 // of one rule's data
	maxHeaders       = 50
	minMaskKey       = 16 // bytes
)

var (
	typePattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)
	namePattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	headerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

// parsedRule is an EmitRule whose expressions are read.
type parsedRule struct {
	EmitRule
	at       string // the key of the YAML document, "events[0].emit[1]"
	ops      expression.Ops
	when     *expression.Expression // nil: always
	key      *expression.Expression // nil: columns
	subject  *expression.Expression // nil: the key
	topic    *topicTemplate         // nil: the entry's
	headers  []parsedMember
	data     *parsedTemplate // nil: row and old
	columns  Columns
	skipping bool
}

// parsedMember is a Member whose expressions are read.
type parsedMember struct {
	name  string
	value *parsedTemplate
}

// parsedTemplate is a Template whose expressions are read.
type parsedTemplate struct {
	at         string
	expression *expression.Expression
	members    []parsedMember // of an object
	elements   []*parsedTemplate
	isList     bool
}

// ruleReader reads rules and gathers the mistakes.
type ruleReader struct{ errs []error }

func (r *ruleReader) mistake(key, format string, args ...any) {
	r.errs = append(r.errs, &OptionError{Key: key, Problem: fmt.Sprintf(format, args...)})
}

// entry is a TableRule, read.
type entry struct {
	pattern pattern
	at      string // its key in the YAML document, "events[0]"
	topic   *topicTemplate
	key     []string
	columns Columns
	masks   Masks
	maskKey []byte
	name    string        // of all its tables; empty: their own
	rules   []*parsedRule // nil: the default mapping
	output  output
	outbox  *outbox // not nil: rows are messages
}

// readEntry reads what an entry has beside its table. i is its index in events.
func (r *ruleReader) readEntry(i int, t *TableRule, maskKey string) *entry {
	at := fmt.Sprintf("events[%d]", i)
	topic := r.readTopic(at, t.Topic, t.Topics)
	e := &entry{at: at, name: t.Name, topic: topic, key: t.Key, columns: t.Columns, masks: t.Mask, maskKey: []byte(maskKey)}
	e.output = r.readOutput(at, t)
	if t.Name != "" && !namePattern.MatchString(t.Name) {
		r.mistake(at+".name", `write up to 64 letters, digits, ".", "_" and "-", such as orders`)
	}
	r.checkColumns(at+".columns", t.Columns)
	r.checkMasks(at+".mask", t.Mask, maskKey)
	if topic != nil && topic.dynamic() && len(t.Emit) == 0 {
		r.mistake(at+".topic", "a topic of values goes with rules: write emit, or a topic of {database} and {table}")
	}
	if t.Emit != nil && len(t.Emit) == 0 {
		r.mistake(at+".emit", "no rules: write at least one, such as {type: order.created, on: insert}, or leave emit out to have created, updated and deleted")
	}
	if len(t.Emit) > maxRulesPerEntry {
		r.mistake(at+".emit", "%d rules: at most %d are allowed", len(t.Emit), maxRulesPerEntry)
		return e
	}
	for j := range t.Emit {
		e.rules = append(e.rules, r.readRule(fmt.Sprintf("%s.emit[%d]", at, j), &t.Emit[j], t.Columns))
	}
	r.checkTypes(e.rules)
	return e
}

func (r *ruleReader) readRule(at string, e *EmitRule, columns Columns) *parsedRule {
	p := &parsedRule{EmitRule: *e, at: at, columns: columns}
	switch {
	case e.Type == "":
		r.mistake(at+".type", "missing: write what the event is called, such as order.paid")
	case !typePattern.MatchString(e.Type):
		r.mistake(at+".type", `write up to 128 letters, digits, ".", "_", "-", ":" and "/", such as order.paid`)
	}
	p.ops = r.readOperations(at+".on", e.On)
	if e.When != "" {
		p.when = r.read(at+".when", e.When)
	}
	if e.Topic != "" {
		p.topic = r.readTopic(at, e.Topic, e.Topics)
	} else if len(e.Topics) > 0 {
		r.mistake(at+".topics", "it goes with a topic: write topic beside it")
	}
	if e.Key.Expression != "" {
		p.key = r.read(at+".key", e.Key.Expression)
	}
	r.checkKeyColumns(at+".key", e.Key.Columns)
	if e.Subject != "" {
		p.subject = r.read(at+".subject", e.Subject)
	}
	p.headers = r.readHeaders(at+".headers", e.Headers)
	if e.Data != nil {
		members := 0
		p.data = r.readTemplate(at+".data", Template{Object: e.Data}, 0, &members)
	}
	if !e.Columns.isZero() {
		p.columns = e.Columns
		r.checkColumns(at+".columns", e.Columns)
	}
	p.skipping = r.readOnError(at+".on_error", e.OnError)
	return p
}

// readOnError reports whether what fails is skipped.
func (r *ruleReader) readOnError(key, onError string) (skipping bool) {
	switch onError {
	case "", onErrorStop:
	case onErrorSkip:
		return true
	case onErrorDeadLetter:
		r.mistake(key, "dead letters come with a later release: write stop, or skip to count and log what fails")
	default:
		r.mistake(key, "write stop or skip")
	}
	return false
}

func (r *ruleReader) read(key, source string) *expression.Expression {
	e, err := expression.Parse(source)
	if err != nil {
		r.mistake(key, "%v", err)
		return nil
	}
	return e
}

func (r *ruleReader) readOperations(key string, on Operations) (ops expression.Ops) {
	if len(on) == 0 {
		return expression.OpSet(canal.Insert, canal.Update, canal.Delete)
	}
	for _, name := range on {
		op, ok := operationNames[name]
		switch {
		case !ok:
			r.mistake(key, "%q is no kind of change: write insert, update, delete or truncate, or a list of them", name)
		case ops.Has(op):
			r.mistake(key, "%s stands in it twice", name)
		}
		ops |= expression.OpSet(op)
	}
	return ops
}

func (r *ruleReader) checkKeyColumns(key string, columns []string) {
	for j, column := range columns {
		if column == "" {
			r.mistake(fmt.Sprintf("%s[%d]", key, j), "empty: write the name of a column")
		} else if slices.Index(columns, column) < j {
			r.mistake(fmt.Sprintf("%s[%d]", key, j), "column %q stands in the key twice: remove one of them", column)
		}
	}
}

func (r *ruleReader) readHeaders(key string, headers Object) (parsed []parsedMember) {
	if len(headers) > maxHeaders {
		r.mistake(key, "%d headers: at most %d are allowed", len(headers), maxHeaders)
		return nil
	}
	for _, h := range headers {
		at := key + "." + h.Name
		err := checkHeader(h.Name)
		switch {
		case err != nil:
			r.mistake(at, "%v", err)
		case h.Value.Object != nil || h.Value.List != nil:
			r.mistake(at, "a header is one text: write an expression")
		default:
			members := 0
			parsed = append(parsed, parsedMember{h.Name, r.readTemplate(at, h.Value, 0, &members)})
		}
	}
	return parsed
}

// checkHeader refuses names that no header may have.
func checkHeader(name string) error {
	lower := strings.ToLower(name)
	switch {
	case !headerPattern.MatchString(name):
		return errors.New(`the name of a header is made of up to 128 letters, digits, ".", "_" and "-"`)
	case strings.HasPrefix(lower, "ce_"), strings.HasPrefix(lower, "ce-"), lower == "content-type":
		return errors.New("this header is the event's own: choose another name")
	}
	return nil
}

func (r *ruleReader) readTemplate(at string, t Template, depth int, members *int) *parsedTemplate {
	p := &parsedTemplate{at: at}
	*members++
	switch {
	case depth > maxTemplateDepth:
		r.mistake(at, "objects inside objects more than %d deep: make it flatter", maxTemplateDepth)
	case *members > maxMembers:
		if *members == maxMembers+1 {
			r.mistake(at, "more than %d values in one rule", maxMembers)
		}
	case t.Object != nil:
		seen := map[string]bool{}
		p.members = []parsedMember{}
		for _, m := range t.Object {
			if seen[m.Name] {
				r.mistake(at+"."+m.Name, "it stands in the object twice: remove one of them")
			}
			seen[m.Name] = true
			p.members = append(p.members, parsedMember{m.Name, r.readTemplate(at+"."+m.Name, m.Value, depth+1, members)})
		}
	case t.List != nil:
		p.isList = true
		for i, element := range t.List {
			p.elements = append(p.elements, r.readTemplate(fmt.Sprintf("%s[%d]", at, i), element, depth+1, members))
		}
	default:
		p.expression = r.read(at, t.Expression)
	}
	return p
}

// checkTypes refuses two rules that could give one change two events of one type: they would have one id.
func (r *ruleReader) checkTypes(rules []*parsedRule) {
	for j, rule := range rules {
		for _, earlier := range rules[:j] {
			if rule.Type == "" || rule.Type != earlier.Type || rule.ops&earlier.ops == 0 {
				continue
			}
			why := "give it another type, or join the conditions with ||"
			if rule.When == earlier.When {
				why = "it is shadowed: remove one of them"
			}
			r.mistake(rule.at+".type", "%s is given to the same kind of change by %s already, and a change has one event of a type, whose id it is part of: %s", rule.Type, earlier.at, why)
			break
		}
	}
}

func (r *ruleReader) checkColumns(key string, c Columns) {
	for i, column := range c.Include {
		if slices.Contains(c.Exclude, column) {
			r.mistake(fmt.Sprintf("%s.include[%d]", key, i), "column %q is excluded, too: remove one of them", column)
		}
	}
	shown := map[string]string{}
	for _, column := range sortedKeys(c.Rename) {
		name := c.Rename[column]
		switch other, taken := shown[name]; {
		case name == "":
			r.mistake(key+".rename."+column, "empty: write the name that events show")
		case taken:
			r.mistake(key+".rename."+column, "%q is the name of column %q already", name, other)
		case slices.Contains(c.Exclude, column), len(c.Include) > 0 && !slices.Contains(c.Include, column):
			r.mistake(key+".rename."+column, "the column is not shown: remove it here, or include it")
		}
		shown[name] = column
	}
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func (r *ruleReader) checkMasks(key string, masks []ColumnMask, maskKey string) {
	seen := map[string]bool{}
	for _, m := range masks {
		at := key + "." + m.Column
		if seen[m.Column] {
			r.mistake(at, "the column is masked twice: remove one of them")
		}
		seen[m.Column] = true
		switch m.Method {
		case maskRedact, maskNull:
		case maskHash:
			if maskKey == "" {
				r.mistake(at, "hash needs a key, which is a secret: write mask_key: ${MASK_KEY} at the top of the file, and set the variable to at least %d random characters", minMaskKey)
			}
		case maskLast:
			if m.Last < 1 || m.Last > 64 {
				r.mistake(at, "write a number of characters from 1 to 64: {last: 4}")
			}
		default:
			r.mistake(at, "write hash, redact, null or {last: 4}")
		}
	}
}

// joined is nil or all mistakes, each an *OptionError.
func (r *ruleReader) joined() error { return errors.Join(r.errs...) }
