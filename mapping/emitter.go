package mapping

import (
	"errors"
	"strings"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/mapping/expression"
)

// emitter is a rule, compiled for one table.
type emitter struct {
	rule *parsedRule
	kind kindPlan
	when *expression.Condition // nil: always
	// topic is empty where topicOf gives it.
	topic   string
	topicOf *topicProgram
	// key are indexes of the columns of the partition key; keyOf stands in for them.
	key   []int
	keyOf *expression.Program
	// subject is nil where the key is the subject.
	subject *expression.Program
	headers []headerProgram
	// data is nil where the event shows row and old.
	data  *dataProgram
	shape *shape
}

// headerProgram gives the text of one header.
type headerProgram struct {
	name  string
	value *expression.Program
}

// topicProgram gives a topic of values, one of topics.
type topicProgram struct {
	template string
	parts    []topicValue
	topics   map[string]string
}

// topicValue is a text, or an expression that gives one.
type topicValue struct {
	text  string
	value *expression.Program
}

// emitters compiles those of the entry's rules that are for some of ops, for the table of p, whose other fields are set. They are nil where the
// entry has no rules. Its error is all mistakes, joined, each an *OptionError.
func (e *entry) emitters(p *plan, ops expression.Ops) ([]*emitter, error) {
	if e.rules == nil {
		return nil, nil
	}
	var errs []error
	emitters := []*emitter{}
	for _, rule := range e.rules {
		if rule.ops&ops == 0 {
			continue
		}
		c := ruleCompiler{entry: e, plan: p, rule: rule}
		c.conditions = expression.Scope{Table: p.table, Ops: rule.ops & ops}
		c.values = expression.Scope{Table: p.table, Ops: rule.ops & ops, Masks: p.masks}
		emitters = append(emitters, c.compile())
		errs = append(errs, c.errs...)
	}
	return emitters, errors.Join(errs...)
}

// ruleCompiler compiles one rule for one table.
type ruleCompiler struct {
	entry              *entry
	plan               *plan
	rule               *parsedRule
	conditions, values expression.Scope
	errs               []error
}

// mistake notes an error of the rule; key is below the rule's own.
func (c *ruleCompiler) mistake(key string, err error) {
	var option *OptionError
	if !errors.As(err, &option) {
		t := c.plan.table
		name := t.Database + "." + t.Name
		option = &OptionError{Key: key, Problem: err.Error()}
		if !strings.Contains(option.Problem, name) {
			option.Problem += " (table " + name + ")"
		}
	}
	c.errs = append(c.errs, option)
}

func (c *ruleCompiler) compile() *emitter {
	rule, at := c.rule, c.rule.at
	e := &emitter{rule: rule, kind: planKind(rule.Type, c.plan.source)}
	if rule.when != nil {
		e.when = c.condition(at+".when", rule.when)
	}
	c.topic(e)
	c.key(e)
	if rule.subject != nil {
		e.subject = c.text(at+".subject", rule.subject)
	}
	for _, h := range rule.headers {
		e.headers = append(e.headers, headerProgram{h.name, c.text(at+".headers."+h.name, h.value.expression)})
	}
	if rule.data != nil {
		e.data = c.data(rule.data)
	}
	var err error
	if e.shape, err = newShape(c.plan.table, at, rule.columns, c.plan.masks, c.entry.pattern.exact()); err != nil {
		c.mistake(at+".columns", err)
	}
	return e
}

func (c *ruleCompiler) condition(at string, e *expression.Expression) *expression.Condition {
	condition, err := e.Condition(&c.conditions)
	if err != nil {
		c.mistake(at, err)
		return nil
	}
	if truth, constant := condition.Constant(); constant && truth != expression.True {
		c.mistake(at, errors.New("it is never true, so that the rule is unused: mend it, or remove the rule"))
	}
	return condition
}

func (c *ruleCompiler) program(at string, e *expression.Expression) *expression.Program {
	program, err := e.Program(&c.values)
	if err != nil {
		c.mistake(at, err)
		return nil
	}
	return program
}

// text compiles an expression whose value is shown as a text.
func (c *ruleCompiler) text(at string, e *expression.Expression) *expression.Program {
	program := c.program(at, e)
	if program != nil && !program.IsText() {
		c.mistake(at, errors.New("a text or a number is needed here: name a column of another type"))
	}
	return program
}

func (c *ruleCompiler) topic(e *emitter) {
	template := c.rule.topic
	if template == nil {
		template = c.entry.topic
	}
	t := c.plan.table
	if !template.dynamic() {
		topic, err := c.entry.topicOf(template, t.Database, t.Name)
		if err != nil {
			c.mistake(template.at, err)
		}
		e.topic = topic
		return
	}
	program := &topicProgram{template: template.text, topics: make(map[string]string, len(template.topics))}
	for _, topic := range template.topics {
		program.topics[topic] = topic
	}
	for _, part := range template.parts {
		switch {
		case part.expression != nil:
			program.parts = append(program.parts, topicValue{value: c.text(template.at, part.expression)})
		case part.placeholder != "":
			one := topicTemplate{parts: []topicPart{part}}
			text, _ := one.render(t.Database, t.Name, string(c.plan.texts.shard)) // what comes of it must be in topics
			program.parts = append(program.parts, topicValue{text: text})
		default:
			program.parts = append(program.parts, topicValue{text: part.text})
		}
	}
	e.topicOf = program
}

func (c *ruleCompiler) key(e *emitter) {
	at := c.rule.at + ".key"
	switch {
	case c.rule.key != nil:
		e.keyOf = c.text(at, c.rule.key)
	case len(c.rule.Key.Columns) > 0:
		key, err := c.entry.keyColumns(c.plan.table, at, c.rule.Key.Columns)
		if err != nil {
			c.mistake(at, err)
		}
		e.key = key
	default:
		e.key = c.plan.key
	}
}

// dataProgram writes a JSON object: texts with values between them.
type dataProgram struct {
	steps []dataStep
	tail  []byte
}

// dataStep is JSON text and the value behind it.
type dataStep struct {
	before []byte
	value  *expression.Program
	image  string // old, new or row as a whole, in the place of value
}

func (c *ruleCompiler) data(t *parsedTemplate) *dataProgram {
	d := &dataProgram{}
	c.template(d, t)
	return d
}

// template appends what writes t to d.
func (c *ruleCompiler) template(d *dataProgram, t *parsedTemplate) {
	switch {
	case t == nil: // a mistake, which is known
	case t.expression != nil:
		step := dataStep{before: d.tail, image: t.expression.Image()}
		if step.image == "" {
			step.value = c.program(t.at, t.expression)
		} else if c.values.Ops == expression.OpSet(canal.Truncate) {
			c.mistake(t.at, errors.New("TRUNCATE has no rows: leave it out"))
		}
		d.steps, d.tail = append(d.steps, step), nil
	case t.isList:
		d.tail = append(d.tail, '[')
		for i, element := range t.elements {
			if i > 0 {
				d.tail = append(d.tail, ',')
			}
			c.template(d, element)
		}
		d.tail = append(d.tail, ']')
	default:
		d.tail = append(d.tail, '{')
		for i, m := range t.members {
			if i > 0 {
				d.tail = append(d.tail, ',')
			}
			d.tail = append(appendString(d.tail, []byte(m.name)), ':')
			c.template(d, m.value)
		}
		d.tail = append(d.tail, '}')
	}
}
