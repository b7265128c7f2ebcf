package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlogd/binlogd/canal"
	"github.com/binlogd/binlogd/checkpoint"
	"github.com/binlogd/binlogd/internal/travel"
)

func (a *app) checkpointConvertCommand() *cobra.Command {
	var output outputFormat
	var tool, owner string
	var yes bool
	cmd := &cobra.Command{
		Use:   "convert --from debezium|maxwell|canal [PLACE]",
		Short: "Take the place of another change-data tool over, as the first checkpoint",
		Long: `Makes the first checkpoint out of the place that another tool has reached, so that a team
can change tools without a gap. Stop the other tool first. PLACE is

  debezium   its offset file (offset.storage.file.filename)
  maxwell    the database of its table positions, on the source (default: maxwell)
  canal      its meta.dat

Nothing between the other tool's last event and binlogd's first is left out; of a
transaction in whose middle it stopped, all comes again. Without --yes the place is
shown and nothing is written. Where there is a checkpoint already, it is kept.`,
		Example: `  binlogd checkpoint convert --from debezium offsets.dat
  binlogd checkpoint convert --from maxwell --owner maxwell --yes
  binlogd checkpoint convert --from canal conf/example/meta.dat --yes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return a.convert(cmd.Context(), cfg, conversion{tool: tool, place: strings.Join(args, ""), owner: owner, yes: yes, output: output})
		},
	}
	a.addConfigFlag(cmd)
	addOutputFlag(cmd, &output)
	cmd.Flags().StringVar(&tool, "from", "", "debezium, maxwell or canal")
	cmd.Flags().StringVar(&owner, "owner", "", "whose place, where there are several: the connector, client or destination/client")
	cmd.Flags().BoolVar(&yes, "yes", false, "write the checkpoint")
	complete(cmd, "from", "debezium", "maxwell", "canal")
	if err := cmd.MarkFlagRequired("from"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

type conversion struct {
	tool, place, owner string
	yes                bool
	output             outputFormat
}

// convertReport is the result of `checkpoint convert`.
type convertReport struct {
	From     string        `json:"from"`
	Owner    string        `json:"owner"`
	Place    shownPosition `json:"place"`    // as the other tool has it
	Position shownPosition `json:"position"` // of the checkpoint
	Next     *shownBegins  `json:"next,omitempty"`
	Applied  bool          `json:"applied"`
	Entry    string        `json:"entry,omitempty"`
}

func (a *app) convert(ctx context.Context, cfg *config, c conversion) (err error) {
	places, err := c.read(ctx, cfg)
	if err != nil {
		return err
	}
	place, err := travel.Choose(places, c.owner)
	if err != nil {
		return &usageError{fmt.Errorf("read the place of %s: %w", c.tool, err)}
	}
	store, err := a.openStore(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	switch _, err := store.Load(ctx); {
	case err == nil:
		return &usageError{fmt.Errorf("there is a checkpoint already, %s: move it with `binlogd checkpoint set`, or put it aside", store.Place())}
	case !errors.Is(err, checkpoint.ErrNotFound):
		return err
	}
	setup, end, err := a.travelSetup(ctx, cfg, store)
	if err != nil {
		return err
	}
	record, spot, err := setup.TakeOver(ctx, place)
	end()
	if err != nil {
		return err
	}
	report := &convertReport{
		From: c.tool, Owner: place.Owner, Place: shownPosition{GTIDs: place.GTIDs, File: place.File, Offset: place.Offset}, Position: newShownPosition(record.Position),
	}
	if n := spot.Next; n != nil {
		report.Next = &shownBegins{GTID: gtidText(n.GTID), File: n.File, Offset: n.Offset, CommittedAt: n.CommittedAt}
	}
	if c.yes {
		entry, err := store.Move(ctx, record, checkpoint.Move{Action: checkpoint.ActionConvert, Reason: "taken over from " + c.tool + " " + place.Owner, By: person()})
		if err != nil {
			return err
		}
		report.Applied, report.Entry = true, entry.ID
	}
	if c.output == outputJSON {
		return writeJSON(a.stdout, report)
	}
	return report.writeText(a.stdout)
}

// read finds the places that the other tool keeps.
func (c conversion) read(ctx context.Context, cfg *config) ([]travel.Foreign, error) {
	parse := map[string]func([]byte) ([]travel.Foreign, error){"debezium": travel.ParseDebezium, "canal": travel.ParseCanal}[c.tool]
	switch {
	case c.tool == "maxwell":
		database := c.place
		if database == "" {
			database = "maxwell"
		}
		rows, err := canal.MaxwellPlaces(ctx, cfg.Source.reach(ctx, nil), database)
		var places []travel.Foreign
		for _, r := range rows {
			places = append(places, travel.Foreign{Owner: r.Client, GTIDs: r.GTIDs, File: r.File, Offset: r.Offset})
		}
		return places, err
	case parse == nil:
		return nil, &usageError{fmt.Errorf("--from %q: write debezium, maxwell or canal", c.tool)}
	case c.place == "":
		return nil, &usageError{fmt.Errorf("--from %s: name its file", c.tool)}
	}
	data, err := os.ReadFile(c.place)
	if err != nil {
		return nil, &usageError{fmt.Errorf("read the place of %s: %w", c.tool, err)}
	}
	places, err := parse(data)
	if err != nil {
		return nil, &usageError{fmt.Errorf("read %s: %w", c.place, err)}
	}
	return places, nil
}

func (r *convertReport) writeText(w io.Writer) error {
	place := func(p shownPosition) string {
		if p.GTIDs == "" {
			return fmt.Sprintf("%s:%d", p.File, p.Offset)
		}
		return fmt.Sprintf("%s (%s:%d)", p.GTIDs, p.File, p.Offset)
	}
	next := "the end of the binlog"
	if r.Next != nil {
		next = fmt.Sprintf("transaction %s at %s:%d, committed %s", r.Next.GTID, r.Next.File, r.Next.Offset, r.Next.CommittedAt.UTC().Format(time.RFC3339Nano))
	}
	outcome := "this is a preview: nothing was written; add --yes to write the checkpoint"
	if r.Applied {
		outcome = "the checkpoint was written; `binlogd run` goes on from there"
	}
	_, err := fmt.Fprintf(w, "from          %s %s\nits place     %s\nposition      %s\nnext          %s\n\n%s\n", r.From, r.Owner, place(r.Place), place(r.Position), next, outcome)
	return err
}
