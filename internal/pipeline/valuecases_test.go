package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/binlogd/binlogd/internal/testenv"
)

// The cases about values, on every server and with the least and the fullest metadata.
func TestCaseValues(t *testing.T) {
	cases := map[string][]string{
		"binary-padding": {`bins.created {"id":"AQAAAAAAAAAAAAAAAAAAAA==","v":"AQA="}`},
		"charsets": {
			`cs.created {"id":1,"l":"café","g":"订单","u2":"café 订单","u8":"café 订单","u":"café 订单 🙂","e":"é","s":["x","ü"]}`,
			`cs.updated {"id":1,"l":"naïve","g":"订单","u2":"café 订单","u8":"café 订单","u":"café 订单 🙂","e":"b,c","s":["x","ü"]},"old":{"l":"café","e":"é"}`,
		},
		"key-change":    {`kc.created {"id":1,"v":1}`, `kc.deleted {"id":1,"v":1}`, `kc.created {"id":2,"v":1}`},
		"minimal-image": {`mi.created {"id":1,"a":1,"b":"x","c":"long"}`, `mi.updated {"id":1,"a":2},"old":{}`, `mi.deleted {"id":1}`},
		"times": {
			`tm.created {"id":1,"d":"2026-11-29","dt":"2026-11-29T10:00:00","dt6":"1000-01-01T00:00:00.000001","ts":"2026-11-29T02:00:00Z","ts3":"2026-11-29T02:00:00.120Z","t":"-838:59:59","t3":"12:00:00.000","y":1901}`,
			`tm.created {"id":2,"d":"0000-00-00","dt":"0000-00-00 00:00:00","dt6":"9999-12-31T23:59:59.999999","ts":null,"ts3":null,"t":"00:00:00","t3":"-00:00:01.500","y":0}`,
		},
		"unsigned": {
			`uns.created {"id":18446744073709551615,"a":255,"b":65535,"c":16777215,"d":4294967295}`,
			`uns.created {"id":9223372036854775808,"a":128,"b":32768,"c":8388608,"d":2147483648}`,
		},
	}
	onEachMetadata(t, func(t *testing.T, server *testenv.Server) {
		for name, want := range cases {
			t.Run(name, func(t *testing.T) { require.Equal(t, want, rows(publishedTwice(t, server, name))) })
		}
	})
}
