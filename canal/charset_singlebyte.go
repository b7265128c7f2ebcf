// Code generated from the servers' own conversion to Unicode. DO NOT EDIT.

package canal

// singleByteTables hold what each byte of a single-byte character set stands for: all 256
// bytes, or the upper 128 where the lower ones are ASCII. U+FFFD: nothing.
var singleByteTables = map[string]string{
	"armscii8": "" +
		"\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f" +
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f" +
		"\u00a0❁§։)(»«—.՝,-՟…՜" +
		"՛՞ԱաԲբԳգԴդԵեԶզԷէ" +
		"ԸըԹթԺժԻիԼլԽխԾծԿկ" +
		"ՀհՁձՂղՃճՄմՅյՆնՇշ" +
		"ՈոՉչՊպՋջՌռՍսՎվՏտ" +
		"ՐրՑցՒւՓփՔքՕօՖֆ’'",
	"cp1250": "" +
		"€\ufffd‚\ufffd„…†‡\ufffd‰Š‹ŚŤŽŹ" +
		"\ufffd‘’“”•–—\ufffd™š›śťžź" +
		"\u00a0ˇ˘Ł¤Ą¦§¨©Ş«¬\u00ad®Ż" +
		"°±˛ł´µ¶·¸ąş»Ľ˝ľż" +
		"ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎ" +
		"ĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢß" +
		"ŕáâăäĺćçčéęëěíîď" +
		"đńňóôőö÷řůúűüýţ˙",
	"cp1251": "" +
		"ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏ" +
		"ђ‘’“”•–—\ufffd™љ›њќћџ" +
		"\u00a0ЎўЈ¤Ґ¦§Ё©Є«¬\u00ad®Ї" +
		"°±Ііґµ¶·ё№є»јЅѕї" +
		"АБВГДЕЖЗИЙКЛМНОП" +
		"РСТУФХЦЧШЩЪЫЬЭЮЯ" +
		"абвгдежзийклмноп" +
		"рстуфхцчшщъыьэюя",
	"cp1256": "" +
		"€\u067e‚ƒ„…†‡ˆ‰\ufffd‹Œ\u0686\u0698\ufffd" +
		"\u06af‘’“”•–—\ufffd™\ufffd›œ\u200c\u200d\ufffd" +
		"\u00a0\u060c¢£¤¥¦§¨©\ufffd«¬\u00ad®¯" +
		"°±²³´µ¶·¸¹\u061b»¼½¾\u061f" +
		"\ufffd\u0621\u0622\u0623\u0624\u0625\u0626\u0627\u0628\u0629\u062a\u062b\u062c\u062d\u062e\u062f" +
		"\u0630\u0631\u0632\u0633\u0634\u0635\u0636×\u0637\u0638\u0639\u063a\u0640\u0641\u0642\u0643" +
		"à\u0644â\u0645\u0646\u0647\u0648çèéêë\u0649\u064aîï" +
		"\u064b\u064c\u064d\u064eô\u064f\u0650÷\u0651ù\u0652ûü\u200e\u200f\ufffd",
	"cp1257": "" +
		"€\ufffd‚\ufffd„…†‡\ufffd‰\ufffd‹\ufffd¨ˇ¸" +
		"\ufffd‘’“”•–—\ufffd™\ufffd›\ufffd¯˛\ufffd" +
		"\u00a0\ufffd¢£¤\ufffd¦§Ø©Ŗ«¬\u00ad®Æ" +
		"°±²³´µ¶·ø¹ŗ»¼½¾æ" +
		"ĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻ" +
		"ŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽß" +
		"ąįāćäåęēčéźėģķīļ" +
		"šńņóōõö÷ųłśūüżž˙",
	"cp850": "" +
		"ÇüéâäàåçêëèïîìÄÅ" +
		"ÉæÆôöòûùÿÖÜø£Ø×ƒ" +
		"áíóúñÑªº¿®¬½¼¡«»" +
		"░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐" +
		"└┴┬├─┼ãÃ╚╔╩╦╠═╬¤" +
		"ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀" +
		"ÓßÔÒõÕµþÞÚÛÙýÝ¯´" +
		"\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0",
	"cp852": "" +
		"ÇüéâäůćçłëŐőîŹÄĆ" +
		"ÉĹĺôöĽľŚśÖÜŤťŁ×č" +
		"áíóúĄąŽžĘę¬źČş«»" +
		"░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐" +
		"└┴┬├─┼Ăă╚╔╩╦╠═╬¤" +
		"đĐĎËďŇÍÎě┘┌█▄ŢŮ▀" +
		"ÓßÔŃńňŠšŔÚŕŰýÝţ´" +
		"\u00ad˝˛ˇ˘§÷¸°¨˙űŘř■\u00a0",
	"cp866": "" +
		"АБВГДЕЖЗИЙКЛМНОП" +
		"РСТУФХЦЧШЩЪЫЬЭЮЯ" +
		"абвгдежзийклмноп" +
		"░▒▓│┤╡╢╖╕╣║╗╝╜╛┐" +
		"└┴┬├─┼╞╟╚╔╩╦╠═╬╧" +
		"╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀" +
		"рстуфхцчшщъыьэюя" +
		"ЁёЄєЇїЎў°∙·√ⁿ²■\u00a0",
	"dec8": "" +
		"\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f" +
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f" +
		"\u00a0¡¢£\ufffd¥\ufffd§¤©ª«\ufffd\ufffd\ufffd\ufffd" +
		"°±²³\ufffdµ¶·\ufffd¹º»¼½\ufffd¿" +
		"ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ" +
		"\ufffdÑÒÓÔÕÖŒØÙÚÛÜŸ\ufffdß" +
		"àáâãäåæçèéêëìíîï" +
		"\ufffdñòóôõöœøùúûüÿ\ufffd\ufffd",
	"geostd8": "" +
		"€\ufffd‚\ufffd„…†‡\ufffd‰\ufffd‹\ufffd\ufffd\ufffd\ufffd" +
		"\ufffd‘’“”•–—\ufffd\ufffd\ufffd›\ufffd\ufffd\ufffd\ufffd" +
		"\u00a0¡¢£¤¥¦§¨©ª«¬\u00ad®¯" +
		"°±²³´µ¶·¸¹º»¼½¾¿" +
		"აბგდევზჱთიკლმნჲო" +
		"პჟრსტჳუფქღყშჩცძწ" +
		"ჭხჴჯჰჵ\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd№\ufffd\ufffd",
	"greek": "" +
		"\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f" +
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f" +
		"\u00a0ʽʼ£\ufffd\ufffd¦§¨©\ufffd«¬\u00ad\ufffd―" +
		"°±²³΄΅Ά·ΈΉΊ»Ό½ΎΏ" +
		"ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟ" +
		"ΠΡ\ufffdΣΤΥΦΧΨΩΪΫάέήί" +
		"ΰαβγδεζηθικλμνξο" +
		"πρςστυφχψωϊϋόύώ\ufffd",
	"hebrew": "" +
		"\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f" +
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f" +
		"\u00a0\ufffd¢£¤¥¦§¨©×«¬\u00ad®‾" +
		"°±²³´µ¶·¸¹÷»¼½¾\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd‗" +
		"\u05d0\u05d1\u05d2\u05d3\u05d4\u05d5\u05d6\u05d7\u05d8\u05d9\u05da\u05db\u05dc\u05dd\u05de\u05df" +
		"\u05e0\u05e1\u05e2\u05e3\u05e4\u05e5\u05e6\u05e7\u05e8\u05e9\u05ea\ufffd\ufffd\u200e\u200f\ufffd",
	"hp8": "" +
		"\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f" +
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f" +
		"\u00a0ÀÂÈÊËÎÏ´ˋˆ¨˜ÙÛ₤" +
		"¯Ýý°ÇçÑñ¡¿¤£¥§ƒ¢" +
		"âêôûáéóúàèòùäëöü" +
		"ÅîØÆåíøæÄìÖÜÉïßÔ" +
		"ÁÃãÐðÍÌÓÒÕõŠšÚŸÿ" +
		"Þþ·µ¶¾—¼½ªº«■»±\ufffd",
	"keybcs2": "" +
		"ČüéďäĎŤčěĚĹÍľĺÄÁ" +
		"ÉžŽôöÓůÚýÖÜŠĽÝŘť" +
		"áíóúňŇŮÔšřŕŔ¼¡«»" +
		"░▒▓│┤╡╢╖╕╣║╗╝╜╛┐" +
		"└┴┬├─┼╞╟╚╔╩╦╠═╬╧" +
		"╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀" +
		"αßΓπΣσµτΦΘΩδ∞φε∩" +
		"≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0",
	"koi8r": "" +
		"─│┌┐└┘├┤┬┴┼▀▄█▌▐" +
		"░▒▓⌠■∙√≈≤≥\u00a0⌡°²·÷" +
		"═║╒ё╓╔╕╖╗╘╙╚╛╜╝╞" +
		"╟╠╡Ё╢╣╤╥╦╧╨╩╪╫╬©" +
		"юабцдефгхийклмно" +
		"пярстужвьызшэщчъ" +
		"ЮАБЦДЕФГХИЙКЛМНО" +
		"ПЯРСТУЖВЬЫЗШЭЩЧЪ",
	"koi8u": "" +
		"─│┌┐└┘├┤┬┴┼▀▄█▌▐" +
		"░▒▓⌠■•√≈≤≥\u00a0⌡°²·÷" +
		"═║╒ёє╔ії╗╘╙╚╛ґ╝╞" +
		"╟╠╡ЁЄ╣ІЇ╦╧╨╩╪Ґ╬©" +
		"юабцдефгхийклмно" +
		"пярстужвьызшэщчъ" +
		"ЮАБЦДЕФГХИЙКЛМНО" +
		"ПЯРСТУЖВЬЫЗШЭЩЧЪ",
	"latin1": "" +
		"€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f" +
		"\u0090‘’“”•–—˜™š›œ\u009džŸ" +
		"\u00a0¡¢£¤¥¦§¨©ª«¬\u00ad®¯" +
		"°±²³´µ¶·¸¹º»¼½¾¿" +
		"ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ" +
		"ÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞß" +
		"àáâãäåæçèéêëìíîï" +
		"ðñòóôõö÷øùúûüýþÿ",
	"latin2": "" +
		"\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f" +
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f" +
		"\u00a0Ą˘Ł¤ĽŚ§¨ŠŞŤŹ\u00adŽŻ" +
		"°ą˛ł´ľśˇ¸šşťź˝žż" +
		"ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎ" +
		"ĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢß" +
		"ŕáâăäĺćçčéęëěíîď" +
		"đńňóôőö÷řůúűüýţ˙",
	"latin5": "" +
		"\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f" +
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f" +
		"\u00a0¡¢£¤¥¦§¨©ª«¬\u00ad®¯" +
		"°±²³´µ¶·¸¹º»¼½¾¿" +
		"ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ" +
		"ĞÑÒÓÔÕÖ×ØÙÚÛÜİŞß" +
		"àáâãäåæçèéêëìíîï" +
		"ğñòóôõö÷øùúûüışÿ",
	"latin7": "" +
		"\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f" +
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f" +
		"\u00a0”¢£¤„¦§Ø©Ŗ«¬\u00ad®Æ" +
		"°±²³“µ¶·ø¹ŗ»¼½¾æ" +
		"ĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻ" +
		"ŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽß" +
		"ąįāćäåęēčéźėģķīļ" +
		"šńņóōõö÷ųłśūüżž’",
	"macce": "" +
		"ÄĀāÉĄÖÜáąČäčĆćéŹ" +
		"źĎíďĒēĖóėôöõúĚěü" +
		"†°Ę£§•¶ß®©™ę¨≠ģĮ" +
		"įĪ≤≥īĶ∂∑łĻļĽľĹĺŅ" +
		"ņŃ¬√ńŇ∆«»…\u00a0ňŐÕőŌ" +
		"–—“”‘’÷◊ōŔŕŘ‹›řŖ" +
		"ŗŠ‚„šŚśÁŤťÍŽžŪÓÔ" +
		"ūŮÚůŰűŲųÝýķŻŁżĢˇ",
	"macroman": "" +
		"ÄÅÇÉÑÖÜáàâäãåçéè" +
		"êëíìîïñóòôöõúùûü" +
		"†°¢£§•¶ß®©™´¨≠ÆØ" +
		"∞±≤≥¥µ∂∑∏π∫ªºΩæø" +
		"¿¡¬√ƒ≈∆«»…\u00a0ÀÃÕŒœ" +
		"–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ" +
		"‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ" +
		"\uf8ffÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ",
	"swe7": "" +
		"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u0008\u0009\u000a\u000b\u000c\u000d\u000e\u000f" +
		"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f" +
		" !\"#$%&'()*+,-./" +
		"0123456789:;<=>?" +
		"ÉABCDEFGHIJKLMNO" +
		"PQRSTUVWXYZÄÖÅÜ_" +
		"éabcdefghijklmno" +
		"pqrstuvwxyzäöåü\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd" +
		"\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd",
	"tis620": "" +
		"\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f" +
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f" +
		"\ufffdกขฃคฅฆงจฉชซฌญฎฏ" +
		"ฐฑฒณดตถทธนบปผฝพฟ" +
		"ภมยรฤลฦวศษสหฬอฮฯ" +
		"ะัาำิีึืฺุู\ufffd\ufffd\ufffd\ufffd฿" +
		"เแโใไๅๆ็่้๊๋์ํ๎๏" +
		"๐๑๒๓๔๕๖๗๘๙๚๛\ufffd\ufffd\ufffd\ufffd",
}
