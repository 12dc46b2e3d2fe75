"""Further sentences than those of the labelled sets, in which what is sensitive stands in double brackets."""

import re
import unicodedata

import pytest

from recuerdo.stores.sensitive import find_sensitive

SENSITIVE = """
# accounts
la cuenta a la que deposito es [[4021-889-7763]] de banregio
mándalo a mi cuenta de nu, [[638180010112233445]]
my checking at wells is [[4483920117]], routing [[121042882]]
account [[77120043]] with nationwide, sort [[07-01-16]]
el CBU es [[0170099220000067797370]] por si querés transferir
el número de contrato en actinver es [[5520917]]
cuenta corriente BBVA [[0182 2370 45 0201543210]]
pay into [[60-16-13]] [[31926819]] please
pásenlo a bancolombia ahorros [[03145678921]]
deposítame en azteca [[127180013037492510]]
brokerage acct number [[Z58-392014]] at fidelity
my ibkr account is [[U7731902]]
mi número de cliente en el banco: [[88304417]]
la cuenta termina en [[3391]]
send it to [[bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq]]
wallet de solana [[7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV]]
# cards
mi tarjeta es [[4539-1488-0343-6467]] ok?
usa la [[5555 5555 5555 4444]], vence 08/28, cvv [[123]]
the card starting [[4929 3781 2201]] got swallowed
my visa [[4716/2210/5859/9884]] isnt working
los últimos cuatro son [[9021]]
card ending [[1177]] was charged twice
last 4 of my debit: [[6604]]
mi débito acaba en [[5530]]
es la visa [[**** 4412]]
el código de atrás es [[774]]
the three digits on the back are [[309]]
cuatro uno cuatro siete dos cero dos dos uno uno tres cuatro cinco seis siete ocho
cvc is [[882]] and zip 10001
amex [[3782 822463 10005]] cid [[4471]]
# credentials
mi contraseña del broker es [[Luna*2019]]
password is [[blue giraffe nine]] dont tell anyone
la contra es [[gatito99]]
pw: [[Tr4der!]]
my pass is [[SunnyDay22]]
el nip del cajero es [[2580]]
pin [[7731]]
mi pin de la app es [[0912]], cámbialo
me mandaron el [[482913]] por sms, es el código?
the code they sent is [[77 41 20]]
verification code: [[309122]]
here's the otp [[661204]]
el token del banco dice [[55120934]]
clave dinámica [[884210]]
entro con juanp@mail.com y [[Zapato#88]]
user: carlos87 pass: [[mango2024]]
username is trader_joe, password [[M00nshot$]]
mi pregunta secreta: el nombre de mi primer perro es [[Canelo]]
mother's maiden name is [[Whitcombe]]
my first pet was [[Biscuit]] if they ask
la respuesta a la pregunta de seguridad es [[Colegio Rivadavia]]
apellido de soltera de mi madre: [[Echeverría]]
wifi password is [[home-sweet-42]]
le puse [[Tigre_2020]] a la cuenta y ahora no entra
changed the password to [[Winter#2025]] yesterday
la clave de mi homebanking es [[Boca1905]]
my trading pin used to be [[4455]], now its [[9090]]
2fa code [[114 902]] expires in 30s
código de verificación [[G-338120]]
# keys
aquí va mi key [[AKIAIOSFODNN7EXAMPLE]]
BINANCE_SECRET=[[vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A]]
my alpha vantage key is [[QX7F2K9LM3PZ8T1B]]
polygon api key [[pT3kZ9vQ1xYb7LmN2cWd]]
token de telegram [[812345678:AAHk3pQz9vXw2LmN7bCdEfGhIjKlMnOpQrS]]
bearer [[a8f3c9d2e1b74056]]
client secret [[7f9a-22bc-91de-0041]]
la llave es [[0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318]]
[[ghp_16C7e42F292c6912E7710c838347Ae178B4a]] is my github token
hf token [[hf_QwErTyUiOpAsDfGhJkLzXcVbNm]]
# identity and tax
DNI [[30.221.847]] y vivo en Rosario
mi dni es [[28445901]]
C.C. [[1.020.733.481]] de Medellín
passport no [[K0482213]]
mi pasaporte [[AAE441902]] vence en mayo
licencia de conducir [[B-4410-2291]]
my ssn is [[219-09-9999]]
social security [[219099999]]
last four of my social are [[6781]]
NI: [[QQ 12 34 56 C]]
driver's license [[D4410029]] california
INE [[1234567890123]]
clave de elector [[GMVLMR80070501M100]]
nss [[92038811234]]
el cuil es [[27-28033514-8]]
RFC [[VECJ880326XX5]] para la factura
my itin [[912-70-1234]]
nit [[900123456-8]]
my utr is [[1234567890]]
EIN: [[12-3456789]]
NIF [[B58378431]]
cédula número [[79481220]]
my green card number is [[A123456789]]
# balances
tengo [[45 mil pesos]] ahorrados y quiero empezar
hay [[12,000]] en mi cuenta
I've got about [[$8,500]] in a savings account
my savings are at [[15k]]
mi saldo en la app dice [[3,221.40]]
me quedan [[200 lucas]] hasta fin de mes
[[two hundred thousand]] in my 401k, am i on track?
con los [[10,000 euros]] que tengo en el banco ¿qué hago?
my net worth is around [[340k]]
heredé [[300 mil pesos]] de mi abuela
nuestros ahorros suman [[22.000 €]]
just inherited [[$50,000]], no clue where to put it
cash isa has [[£12,300]] in it
I keep [[5 grand]] under the mattress
tengo medio [[millón de pesos]] en cetes
account balance is [[2,310.55]]
traigo [[8 mil varos]] en mercado pago
en el plazo fijo tengo [[1.200.000 pesos]]
mi cartera vale [[18.400 euros]]
my portfolio is worth [[$76k]]
there's [[$3,400]] left in my checking
el fondo de emergencia lo tengo en [[60,000]]
i saved [[ten grand]] this year
se me quedaron [[500 dólares]] en paypal
con [[30 mil pesos]] guardados, ¿me alcanza?
saldo disponible: [[1,840.00]]
buying power [[$2,114]]
i only have [[$120]] to my name
vendí el coche y me dieron [[9.000 euros]]
# income
gano [[28,000 al mes]]
mi sueldo es de [[2.100 €]]
I make [[$95,000 a year]]
salary is [[64k]]
me pagan [[12 mil]] a la quincena
they pay me [[£2,800 a month]]
take home is around [[3,900]]
cobro [[450 mil pesos]] por mes
con mis ingresos de [[40 mil]] mensuales
we bring in [[120k]] between us
mi pensión es de [[980 euros]]
soy freelance, saco unos [[1,500 dólares]] al mes
just got a raise to [[$110k]]
me subieron el sueldo a [[32 mil]]
my bonus was [[$14,000]]
de aguinaldo me tocaron [[15,000 pesos]]
household income [[140k]]
i'm on [[£45k]] plus bonus
# debt
debo [[120,000]] de la hipoteca
I owe [[$7,200]] on my visa
mi préstamo es de [[50 mil]]
[[$31k]] in student loans
tengo una deuda de [[85.000 pesos]] con coppel
mortgage has [[£210,000]] left
le debo [[3 mil]] a mi cuñado
overdraft of [[£900]] again
car loan's at [[14,300]] still
estoy en números rojos, [[-450 euros]]
pedí un crédito de [[200,000 pesos]]
credit card debt is [[six thousand]]
me faltan [[18 mil]] para liquidar el coche
we still have [[$240k]] on the house
# holdings
tengo [[35]] acciones de Walmex
compré [[12]] NVDA a [[131.20]]
my [[200]] shares of ford
I own [[3.5]] eth
entré en bitcoin a [[61,000]] y ando sudando
vendí [[80]] títulos de bimbo a [[58.3]]
I'm up [[40%]] on palantir
voy abajo [[22%]] en tesla
i'm down [[$3,200]] on my puts
le gané [[15%]] a cemex
mi costo promedio es [[44.10]]
cost basis is [[$212.40]]
bought AMD at [[98]], sold at [[142]]
perdí [[5 mil pesos]] con crypto
I lost [[$900]] on gme
mi posición: [[100]] AAPL a [[171.2]]
traigo [[40]] cedears de mercadolibre
me quedé con [[15]] de amazon
long [[2]] contracts from [[5890]]
we hold [[1,000]] units of VWCE
got [[60]] voo in the ira
mi portafolio lleva [[+12%]] este año
my account is down [[8%]] since january
in at [[$34]], should i average down?
sold half my nvda for a [[$2,400]] profit
tengo [[0,8]] bitcoins en una ledger
agarré [[25]] de apple en la caída
promedié a [[187.5]]
i'm sitting on [[500]] doge
llevo [[2 mil pesos]] de ganancia
mi cuenta en el galicia, [[4009871-2 033-8]], está a nombre de mi vieja
put the funds in acct [[8830-2291-04]] pls
la de santander es [[60598812340]]
it's going to my halifax, [[11-02-47]] and [[00918233]]
usa esta cuenta bancaria [[1520993847]], la otra ya la cerré
where's my transfer? sent from [[3300981276]] on monday
te paso mi cbu [[2850590940090418135201]]
interbancaria [[012180015678901231]] a nombre de lupita
my lloyds ac no [[22918374]] sort code [[309634]]
nequi [[3104482917]] ahí me caen los dividendos
routing [[021000021]] account [[9381007742]]
el retiro va a hsbc [[4062298117]] verdad?
degiro client id [[20984417]]
numero de cuenta: [[1234-5678-90]]
en la cuenta de ahorros tengo [[7,450]]
there's roughly [[14k]] chilling in my roth
mis papás me dejaron [[500 mil]] y no sé qué hacer
ando con [[3,200 pesos]] en la cuenta, ¿alcanza para algo?
me sobraron [[4 mil]] este mes
ya junté [[90 mil]] para el enganche
i have [[£600]] spare each month
just checked and im at [[52,300]] across all accounts
total de mi patrimonio: [[2.4 millones de pesos]]
tengo guardados [[tres mil euros]] para emergencias
about [[fifteen hundred quid]] in my current account
the ira's at [[88,214]] as of today
con [[700 usd]] en la billetera de binance, qué compro
mi colchón es de [[9.000 euros]]
we've managed to put aside [[25 grand]] for a house
acabo de recibir [[120,000]] de un finiquito
me salió [[5.600 €]] disponibles en ing
checking shows [[$1,203.18]] after rent
cuento con un capital de [[150 mil pesos]]
dispongo de [[20.000 €]] para empezar
pagué con la [[5474 9251 0012 3318]] y no pasó
it's [[4485-2755-1940-0038]] exp 04/29 security code [[517]]
la nueva tarjeta acaba en [[3302]] y la vieja en [[8817]]
virtual card ****[[7719]] keeps failing
dice "tarjeta [[2204]] rechazada"
el cvv es [[908]] por si lo necesitas
my mastercard number's [[5105 1051 0510 5100]]
[[cinco uno cero cinco uno cero cinco uno cero cinco uno cero cinco uno cero cero]] es la tarjeta
the one that finishes in [[0045]] isn't mine anymore
¿sirve mi carnet [[5062 5412 3456 7895]]?
quita la visa que termina [[6610]]
first 6 digits are 453211 and last 4 are [[9008]]
la contraseña la cambié a [[Pelusa.2024]]
my password? it's [[ilovemydog77]]
la clave del wifi y la del broker es la misma: [[ardilla55]]
usuario: mgarcia / contraseña: [[Tacos$100]]
por sms me llegó [[7 4 0 2 8 1]]
use [[558301]] it's the code from the authenticator
el código para entrar es el [[2291]]
pin's [[6610]] if the app asks
security answer is [[Springfield Elementary]]
mi palabra secreta es [[murciélago]]
your code is [[903 441]], they said not to share it, here you go
cred: admin / [[Passw0rd!]]
my robinhood login is kev@example.com / [[hodl4ever!]]
el patrón de desbloqueo es [[1478]]
contraseña = [[sol y luna siete]]
my password used to be [[dragonfly]] but now it's [[dragonfly8]]
pass phrase "[[correct horse battery]]"
mete [[4417]] cuando te pida el pin
la firma electrónica tiene clave [[fiel2023X]]
street i grew up on is [[Maple Grove]] thats the secret question
la ciudad donde nací (pregunta de seguridad): [[Tlaxcala]]
backup code [[8f3k-29dl]] in case I lose the phone
token [[88 12 04]] del netkey
i typed [[Bluebird_19]] and it says wrong password
aún debo [[63 mil]] del coche
mi tarjeta está al tope, [[22,500]] de saldo
student loans are at [[48k]] and growing
nos quedan [[95.000]] de hipoteca
i'm [[9k]] in the hole after the move
owe the IRS [[$4,150]]
tengo un crédito hipotecario de [[1.2 millones de pesos]]
credit card's at [[$3,870]] lol
le debo [[dos mil pesos]] a mi mamá
paying off a [[15k]] loan
trabajo de meserx y saco unos [[9 mil]] con propinas
my job pays [[52,000]]
entre los dos ganamos [[60 mil pesos]]
me quedan [[1.450]] netos después de impuestos
salario base [[18,500]] más comisiones
contracting at [[£450 a day]]
i pull in around [[7k a month]]
mi quincena es de [[6,800]]
renta que cobro: [[11 mil pesos]]
got paid [[2,340]] today
soy dueño de [[300]] títulos de Alsea
my [[75]] msft are up nicely
metí [[10 mil pesos]] en nvidia a 118
vendí todo el btc con [[34%]] de ganancia
palantir position is green [[61%]]
mis ETH los compré a [[1,850]]
avg'd down to [[23.40]] on nio
mi plusvalía ya es de [[8,200 pesos]]
hold [[18]] googl and [[22]] amzn
entré a [[3.20]] y salí a [[4.75]] en ypf
tengo [[mil]] cardano
made [[6k]] off gme back in 2021
i'm red [[27%]] on rivian
perdí la mitad, unos [[800 dólares]], en luna
me quedan [[5]] onzas de plata
short [[100]] tsla from [[290]]
bag is [[4,000]] shib lol
compré walmex en [[58]] y ya va en 66
mi número de seguro social es [[42-98-77-1234-5]]
soy Pedro Ruiz, C.I. [[4.332.119-0]]
DNI: [[71234567-Q]]
my nino is [[AB 12 34 56 C]]
pasaporte español [[PAB123456]]
driving licence [[MORGA657054SM9IJ]]
ssn ends in [[9931]]
el folio de mi INE es [[IDMEX1234567890]]
curp: [[ruml920714mjcZPR08]]
foreigner id [[X-1234567-L]]
cuit [[30-71034567-1]] de la pyme
mi rfc con homoclave: [[GAHJ9001013K8]]
the company's VAT is [[GB123456789]]
ruc [[20512345678]]
tax id [[98-7654321]] for the llc
utr [[12345 67890]]
SECRET_KEY = "[[9fK2xLmQ7vRt4WbZ]]"
api: [[5b1f0c2e-77aa-4d1b-9c3e-0f2a6d8b9e41]]
esta es la clave privada: [[5Kb8kLf9zgWQnogidDA76MzPL6TsZZY36hWXMssSzNydYXYB9KF]]
aws_secret_access_key=[[wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY]]
finnhub token [[c1q2w3e4r5t6y7u8i9o0]]
so i've 2 accounts, the main one [[70884512]] at starling, the other i forgot
mi cuenta: [[4152 7788 01]], banco azteca
deposit went to ...[[4471]] at wells
quiero retirar a [[1029384756]] de scotiabank
la cuenta vista [[00-012-88837-4]]
barclays [[20-18-93]] / [[73920184]]
acc num [[0039 2817 55]] for the td one
IBAN [[ES7921000813610123456789]]
caja de ahorro en pesos [[191-044-118273/2]] del credicoop
fondeo desde davivienda [[0570 0041 8820 3391]]
usaré la cuenta de inversión [[88-20193]]
my account no is [[6003948571]], the payee is me
¿ven mi cuenta [[55820]]? es la que tiene el problema
cobré [[14 mil]] de aguinaldo, ¿qué hago?
nos dieron [[800 mil]] por el terreno
got [[4k]] in premium bonds, boring but safe
solo tengo [[50 dólares]] para empezar jaja
pues en total son [[12,500]] en la app y [[3,000]] en efectivo
el saldo que veo: [[$88,120.07 MXN]]
i've around [[thirty thousand]] in a GIC
hay [[6 millones de pesos]] en la cuenta del negocio
mi afore tiene [[212 mil]]
my pension pot's about [[£130k]]
tengo [[2 palos]] en el fci
ahorros: [[18k]]. deudas: [[4k]]
I have a little over [[$2,000]] to play with
my grandpa left me [[75k]]
balance is sitting at [[9,812.40 usd]]
quedan como 3 lucas en la sube y [[150 lucas]] en mercado pago
total across my brokerages: [[$212,440]]
mis cetes ya van en [[45 mil]]
mi sueldo neto ronda los [[24 mil]]
earn roughly [[£32k]] before tax
base [[120k]], bonus [[20k]]
cobro la mínima, [[780 € al mes]]
mi esposo gana 45 mil y yo [[20 mil]]
con una nómina de [[1.600 euros]]
my wage is [[2,150]] after deductions
hago como [[25 mil al mes]] vendiendo ropa
jubilado, pensión de [[11,300 pesos]]
side hustle brings in [[$800 monthly]]
I've got [[12k]] of credit card debt
quedé debiendo [[4,300]] al banco
mi crédito infonavit va en [[480 mil]]
still [[6.2k]] left on the car
pago [[5,400]] de hipoteca al mes
refinanced, [[288k]] outstanding
la deuda de mi tarjeta ya llegó a [[31,000]]
me prestaron [[10 mil]] mis papás
tengo que pagar [[22 mil]] de tarjetas
[[2.5k]] overdrawn at natwest
I'm in debt, like [[40 thousand]]
compramos [[250]] acciones de ALFA a [[13.40]]
tengo [[10]] NVDA, [[5]] AMD y [[30]] INTC
my tesla cost basis? [[188.3]]
ya llevo [[30%]] arriba en gruma
the [[80]] shares of V i have
tengo una posición de [[3,000 dólares]] en SPY
me salí de Alsea con [[9%]] de pérdida
en mi portafolio hay [[120]] títulos de NAFTRAC
lost [[45%]] on that spac
gains so far: [[$1,840]]
[[2,400 usd]] de ganancia no realizada en meli
i'm long [[5]] lots of eurusd from [[1.0720]]
owned [[1,500]] RR since 88p
me costaron [[312]] cada una
average entry [[0.52]] on xrp
hodling [[0.25]] BTC since 2019
compré oro, [[2]] onzas, en [[2,010]]
vendí mis [[60]] de FEMSA ganando [[4,200]]
la contraseña nueva: [[Invierno_25]]
contra del excel: [[bolsa2025]]
password for the statement pdf is my dob [[14081986]]
el pdf se abre con la clave [[0411]]
my pin is the year i was born, [[1987]]
yeah the code was [[4 4 8 1 2 0]]
SMS: "Tu código es [[778120]]. No lo compartas"
dice que ingrese el token: [[30291847]]
auth app shows [[220 184]]
acceso: fer.mora / [[Mora2023*]]
login: tomt password: [[ch3lsea]]
pw is same as email, [[Rosebud#1]]
pass es [[tequila]] y limon
the answer is [[Fluffy]], first pet
nip telefónico [[330912]]
clave de 4 dígitos [[6601]]
DNI nº [[45.882.190-K]]
mi documento es [[1.032.445.908]]
RG [[12.345.678-9]]
número de pasaporte: [[YB7719203]]
license number [[F255-9215-0094]]
SS# [[401-22-9981]]
adjunto mi cédula [[0912345678]]
NINO [[QQ123456C]]
mi nss [[1298 76 5432 1]]
residencia NIE [[X7712903B]]
W-9: TIN [[47-1120934]]
cuil [[20304567892]]
mi registro federal es [[PEGJ850101AB3]]
CIF de la sociedad [[B-83721940]]
tax reference [[492/AB81726]]
vat reg no [[884 2019 33]]
nit [[800.197.268-4]]
kraken private key [[kQH5HW/8p1uGOVjbgWA7FunAmGO8lsSUXNsu3eow76sz84Q18fWxnyRzBHCd3pd5nE9qa99HAZtuZuj6F1huXg==]]
export COINBASE_KEY=organizations/[[ab12cd34-5678-90ef-1234-567890abcdef]]/apiKeys/11
my key starts with [[pk_live_51Hx9ZqK2vTbYdR8mWn4s]] and ends there
[[xoxb-123456789012-abcdefGHIJKL]] is the slack one
mi cuenta donde cae la nómina es [[56-7781203-4]] de santander
payout to [[8842019937]] (citi) again pls
the ally savings is [[2188450193]] if u need
¿me confirman el abono a la [[1547709283]]?
cuenta ahorro banco de bogotá [[245-11873-9]]
sort [[40-11-58]] account [[62019384]] hsbc
cbu del nación [[0110599520000012345678]]
aba [[026009593]] acct ending [[7712]]
me sale que tengo [[8,930.55]] disponibles
só tengo unos [[6 mil]], ¿sirve?
around [[3 grand]] is just sitting there
junté [[cincuenta mil pesos]] vendiendo mis cosas
nothing in savings but [[£1,900]] in premium bonds
i've a spare [[$700]] this month
mi esposa y yo tenemos [[1.2 millones]] en el banco
la tarjeta es [[4012 8888 8888 1881]], nombre Laura
charge [[6011000990139424]]
las últimas cuatro: [[5567]]
mine ends [[9934]] i think
cvv: [[6629]] (amex)
seguridad [[318]] al reverso
contraseña vieja [[Perro123]], nueva [[Gato456]]
mi clave pasó a ser [[LunaLlena88]]
password was '[[letmein2024]]' till yesterday
the pin i use everywhere, [[1379]], is it safe?
les dicté el código [[662 019]] por teléfono
otp came as [[90 31 77]]
enter [[443201]] from the text message
nombre de mi primera mascota: [[Rocky]]
my mum's maiden name was [[Ferguson]]
token de acceso: [[7f3b9a1c2d4e]]
user javier.r pw [[Ahorro!9]]
usuario=admin;clave=[[Zx9_plm]]
entra con mi correo y la contraseña [[Bolsa.77]]
todavía debo 18 meses del coche, unos [[90 mil]]
the mortgage still has [[140k]] to go
student debt: [[$27,650]]
tengo deudas por [[65 mil pesos]]
le firmé un pagaré de [[30,000 pesos]]
owe my brother [[400 quid]]
percibo [[1.350 euros]] de paro
i clear about [[5,200]] monthly
mi salario, [[2.800.000 pesos]], apenas alcanza
my pay went up to [[£38,500]]
saco como [[700 dólares al mes]] de rentas
we earn [[9k]] combined per month
tengo [[3]] bitcoin y [[12]] eth
mis [[500]] de GAP me salieron a [[190]]
compré [[5]] CEDEARs de KO
bought [[0.02]] btc @ [[58,200]]
i got in nvda at [[45]] presplit
sitting on a [[60%]] gain in gold
mi cartera está un [[14%]] abajo
estoy palmando [[700 euros]] con repsol
up [[9 grand]] on nvda calls this week
avg cost [[71.6]], holding [[300]]
acciones: [[45]] de Apple, [[20]] de Ford
me quedan [[1,000]] XRP
vendí [[100]] cemex en [[14.20]] y perdí [[800]]
ine [[4402118837261]]
DNI [[40118273]] argentino
c.c [[80.123.456]]
my nie: [[Z1234567R]]
pasaporte nro. [[14AB58213]]
carnet de conducir [[12345678-Z]]
social is [[601 22 8419]]
national insurance [[JT 55 02 18 A]]
tfn [[123 456 782]]
rfc de la empresa [[AIE120315QX4]]
facturar a CUIT [[33-70988887-9]]
ein [[834419920]]
itin es 9XX-70-4432, mejor dicho [[944-70-4432]]
api-key: [[3e1fb0a4c7d24b5d9a]]
[[sk-ant-api03-ZqW9xYv8Ut7Rs6Qp5On4Ml3K]] is what i pasted
mi cuenta bbva termina [[0021]] pero la buena es [[1593847760]]
can you see acct [[5530-1928]]? it's my joint one
deposité a la cuenta [[4002-77-118823]] del banco popular
the sort is [[08 71 99]] and the number [[33910284]]
transfer reference aside, my account is [[0129 8837 21]]
the revolut one: [[77261538]], sort code [[04-00-75]]
i have like [[eleven k]] in my brokerage
nos quedan [[seis mil]] para todo el mes
efectivo disponible [[14,880.20]]
el total de mis cuentas suma [[380 mil]]
roughly [[250 bucks]] in my trading account
got [[$31.5k]] parked in treasuries
mi fondo de ahorro ya tiene [[27,400]]
acabo de heredar [[2 millones de pesos]]
cash on hand: [[£8,150]]
todo mi capital son [[900 euros]]
[[4556 7375 8689 9855]] caduca 11/27
tarjeta virtual [[5200828282828210]]
dice que mi visa [[7788]] fue rechazada
cc number [[4000056655665556]]
el cvc que viene atrás: [[449]]
my code word is [[bluebonnet]]
la contraseña que uso siempre es [[Cafe_con_leche]]
pass: [[t0mate]]
nip [[8802]] de la tarjeta
código sms [[48-21-93]]
they emailed me a code, [[771930]], what now
"Su clave dinámica es [[114477]]" me pide confirmar
my password hint is dog but the password is [[Rex2010!]]
me sé de memoria el pin: [[5 2 0 9]]
security word: [[marmalade]]
i owe about [[11k]] across two cards
debo como [[4 mil]] de la compu en coppel
my loan balance is [[6,740]]
hipoteca pendiente: [[87.300 €]]
cargando con [[$18k]] de préstamos
i still have [[22,000]] left on my student loan
el sueldo me llega de [[17,200]] limpios
ganaba [[50 mil]] y ahora [[38 mil]]
my paycheck is [[$1,870]] every two weeks
ote is [[180k]] with 120 base
con mi pensión de [[9,400]] ¿puedo invertir?
take-home [[2.6k/mo]]
cobro [[3.200]] brutos
i bought [[30]] MSFT in 2021 around 240
mi precio de compra fue [[17.9]]
tengo [[60]] acciones de Inditex a [[32 euros]]
loaded up on [[200]] F at [[11.4]]
ya le perdí [[40%]] a esa cripto
my SOL bag is worth [[5k]]
i'm holding [[12]] contracts of SPY 600c
vendí ayer [[10]] de Mercado Libre
net loss of [[$640]] this month for me
ganancia realizada: [[3,150 MXN]]
P&L del mes: -[[2,300]]
average down at 28 last week, now avg is [[31.2]]
poseo [[1.5]] onzas de oro
mi DNI, [[17.884.302]], y el trámite 00412
ID: cédula [[1-1234-0567]] de costa rica
passport: [[533380006]]
curp [[MEHJ790412HJCNRS08]]?
nss: [[1234 56 7890]]
ssn [[123 45 6789]]
rfc [[XAXX010101000]]
cuit/cuil [[23-22222222-9]]
TIN is [[900-88-1234]]
mi número de contribuyente es [[4411223-7]]
apikey=[[ZXCV1234asdf5678]]
mi llave api de bitso es kXwPqLmZrT y el secreto [[9d8f7a6b5c4e3d2f1a0b]]
cuenta n° [[7743-0091-22]] en itaú
send my dividends to [[4410928837]], sort [[23-05-80]]
mi clabe interbancaria es la [[646180110400000007]]
the account I opened yesterday, [[559920188]], shows zero
tengo aproximadamente [[$40,000 MXN]] disponibles para invertir
i've been stacking cash, [[17k]] so far
en mi alcancía llevo [[3,600 pesos]]
we have [[£22k]] in joint savings
my emergency fund sits at [[$9,000]]
cuento con [[5 millones de pesos]] colombianos
my card is [[5425 2334 3010 9903]]
la de débito, [[4766 8400 1122 3345]], fue clonada
my visa ending [[4032]] and mc ending [[5540]]
mi contraseña actual es "[[Sol3dad]]"
the answer to my security question is [[Toyota Corolla]]
pin de la tarjeta: [[6 4 1 0]]
here is the 6 digit code [[004417]]
mi token es [[558 102]] y caduca ya
usuario pepe99, la clave es [[Nub3s*]]
pwd=[[Qwerty!23]]
debo [[$15,300]] en la tarjeta de liverpool
my car note is 480 a month and i owe [[19k]]
tenemos una hipoteca por [[1.8 millones de pesos]]
todavía le debo [[2.000 euros]] al banco
i earn around [[$4,200 per month]] after tax
mi ingreso mensual es de [[22 mil]]
me pagan [[18 euros la hora]]
gano el mínimo, unos [[8,300 pesos]]
i own [[45]] shares of Costco bought at [[512]]
tengo [[200]] acciones de Ecopetrol a [[2.350]]
compramos [[3]] ETH a [[2,900 dólares]]
llevo [[18%]] de ganancia en bimbo
my portfolio lost [[$2,100]] last week
i'm at a [[35%]] loss on intel
mi promedio en AMD es [[122.4]]
still holding [[80]] TLT from [[101]]
vendí [[40]] AAPL y me quedé con [[10]]
my NI number's [[PX 90 11 42 D]]
mi dni [[44556677L]]
cédula de ciudadanía [[1018.442.907]]
driving license no. [[SMITH711208J99AB]]
SSN [[457556666]]
mi CURP es [[PXRA901231MMCRMN05]]
el rfc: [[QUMA700101T1A]]
my UTR number [[55512 34567]]
NIT [[901.223.344]]
clave API: [[xK92jf-qwe81-PPo0]]
secret: [[whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw]]
"""

HARMLESS = """
¿cuánto es 10% de 5000?
alerta en 150 para TSLA por favor
el bitcoin tocó 68,000 dólares hoy
si compro 10 acciones a 200 ¿cuánto gasto?
i want to buy 5 shares of apple if it dips to 210
what would happen with 1000 dollars in an index fund for 10 years
stop loss at 95 and take profit at 120
la fed subió 25 puntos base en 2023
NVDA reported 35.1 billion in revenue
mi objetivo es juntar 100,000 pesos en dos años
my goal is 20k by december
my budget is 500 a month for this
la comisión es de 29 pesos por operación
the etf charges 0.03% a year
el pedido 88213 no llegó
order 5519-2210 was cancelled
case number 00481922, any update?
¿qué es la CLABE?
how do i change my pin?
el código no me llega al teléfono
why does it ask for a verification code every time
la contraseña debe tener 8 caracteres
my password isn't working
¿cuál es el precio de 100 acciones de AMXL?
Tesla tiene 30 mil millones en efectivo
berkshire has 320bn in cash
Amazon debe 58 mil millones
la deuda de México es de 50% del pib
average salary in london is what?
¿cuánto gana un trader?
volumen promedio de 45 millones
llámame al 55 1234 5678
call me at 415-555-0132
nos vemos el 12/03/2026 a las 10:30
vuelo a Madrid el 5 de enero
quiero invertir 2000 pesos al mes
i can put in 300 a month
can i start with 50 dollars?
el mínimo para abrir cuenta es 1000 pesos
minimum deposit is $100
cuéntame de los 7 magníficos
error 404 al entrar
versión 3.2.1 de la app
the s&p closed at 5,970.84
EMA de 20, 50 y 200
compré una casa el año pasado
tengo 3 alertas activas
tengo 28 años y vivo en Lima
i have two kids and a dog
cierra en 185.20 con volumen alto
rsi at 28, oversold?
soporte clave en 4500
la zona de 17.50 por dólar aguanta
strike 150 call expiring 01/17
GDP grew 2.8%
dame las 5 acciones más volátiles
show me the top 10 gainers
my risk per trade is 1%
máximo 2% de riesgo por operación
if i had 500 shares of KO what dividend would i get
supón que tengo 20000 dólares
imagine i own 100 shares of AAPL
¿me conviene comprar 50 títulos de GFNORTEO?
el dividendo es de 1.20 por acción
bonos a 10 años en 4.3%
cetes a 28 días pagan 10.2%
the 2-year is at 4.1
el euro está a 1.08
dollar at 18.9 pesos
una onza de oro vale 2,650 dólares
el ISIN es US0378331005
CUSIP 594918104
ticket de soporte #120993
factura 2231 de noviembre
tracking 9400110200881234567890
código postal 06700
zip code 90210
the meeting id is 884 2210 9911
hotel reservation 7740012 for two nights
room 412, checkout at 11
la habitación 305 tiene aire
PE de 22.4 contra 18.1 del sector
market cap of 3.4 trillion
palantir went from 6 to 170
desde 2019 subió 400%
el 15 de marzo de 2020 cayó 12%
fed minutes 2025-12-06
apple's services revenue hit 25 billion
meta despidió a 11,000 empleados
bitcoin halving every 210,000 blocks
pon el gráfico de 15 min con macd 12 26 9
fibonacci 0.382 y 0.618
pregunta: qué es un swap?
what's a good password manager?
seed funding of $2M
the key is patience
la clave es no desesperarse
api keys: where do i create one?
how many shares does ford have outstanding, 4 billion?
¿qué banco da más, nu o klar? 14% vs 15%
openbank paga 2.5% TAE
revolut charges 1% after 1000 a month
the fund returned 8% a year
el fondo rindió 9.5% anual
AAPL ganó 2% y TSLA perdió 3%
quiero vender si sube 10%
sell 10 shares at market
compra 5 de MSFT cuando baje a 400
set a limit order at 42.50
buy 0.1 btc if it hits 60k
la casa cuesta 3 millones de pesos
el iPhone vale 25 mil pesos
netflix is 15.49 a month now
uso la versión pro desde 2022
trabajo 8 horas al día
duermo 6 horas
me gustan las velas de 1h y 4h
prefiero perfil conservador
recuérdame revisar a las 9:45
¿el saldo mínimo para no pagar comisión es 2,000?
does the roth limit stay at 7,000 for 2026
AMZN pays its warehouse staff like $22 an hour
mi broker cobra 0.1%
mi banco ofrece 11% en plazo fijo
mi app marca error 5003
my chart shows 3 green candles
my watchlist has 14 tickers
tengo 12 tickers en la lista
tengo dudas con el fondo 60/40
mi perfil es agresivo nivel 4
tengo examen a las 9
I have a call at 3
my alarm is 6:30
my limit order is at 55.20
mi stop está en 44.10
mi orden límite de 33.5 sigue abierta
i put my stop at 98 and went to bed
puse alerta en 120
le puse stop a 88.5
compré el curso de opciones en enero
i bought a book about options in 2019
gané confianza después de 3 meses
perdí el acceso desde ayer
i lost access 2 days ago
vendo si pierde 45.30
sold out concert lol
Buffett bought 5 million shares of chevron
blackrock compró 20 mil bitcoins
tesla sold 400,000 cars this quarter
Slim tiene 80 mil millones de dólares
Alphabet holds 110 billion in cash
the average 401k balance is 134,000
el sueldo promedio en México anda en 16 mil
CEO makes 20 million a year
inflation was 9.1% in june 2022
the 200 day is at 412
spy 600 calls look cheap
que tan buena es la 0.618?
cuánto pagaría de impuestos por 10 mil de ganancia
how much tax on a $5,000 gain?
si gano 30 mil, cuánto pago de isr
if i earned 80k what bracket am i in
¿con 500 pesos puedo empezar?
is $1000 enough to start
quiero ganar 1000 dólares al mes con trading
aiming to save 10k this year
mi meta de ahorro: 50 mil
ponle 3 decimales
account type: individual
cuenta demo con 100 mil virtuales
paper account starts with 100k
paper trading with $100,000
me dan 10 mil de fondeo en la demo
order id 7f3a-22b1
referencia 0099281 del depósito no aparece
trade #55120
mi folio es 882913
el CUSIP de apple?
error code 1044 on login
código de error 503
the login page is v2 now
mi usuario no aparece en el ranking top100
password reset link expired in 15min
contraseña de mínimo 12 caracteres
2fa via sms or app?
pin the chart to the top
unpin chart 2
el token UNI vale 7.20
token LINK at 14.8
bitcoin wallet fees are 12 sats
visa cerró en 310.45
mastercard at 520, visa at 310
comprar visa a 300?
amex reportó 3.5 de eps
citi upgraded to 85
schwab cut fees in 2019
santander cotiza a 4.85
bbva paga 0.41 de dividendo
banorte subió a 172.30
sofi broke 15
td ameritrade became schwab in 2023
the 10k filing
read the 10-k of 2024
form 1099 when?
w-8ben expires in 3 years
SAT me pide el formato 22
ley 26.831 de mercado de capitales
nit picking but the axis is wrong
la tasa hipotecaria está en 10.75
mortgage rates hit 7.2
average price target 250
average volume 3,200,000
precio promedio del mercado 45.2
short interest is 12%
long term i want 10%
short squeeze to 100?
position sizing: 2% rule
posición 3 del ranking
open interest 45,000
resultado: 3 a 1 ganó el América
ganó 3,000 pesos mi primo en la lotería
la acción perdió 500 pesos? no, 5
MSFT up 12% since january
down 3% on the day
btc down 20k from the top
oro sube 15 dólares
cae 2,000 puntos el bitcoin
le faltan 20 dólares para el máximo
que me recomiendas para 5 años
in 2008 lehman owed 600 billion
pays 65 an hour, contract role
i think btc goes to 100k by june
my friend says nvda will hit $200
creo que el dólar llega a 20 pesos
mi primo dice que cemex vale 15 pesos
me parece caro a 300 dólares
i like the $50 level on intel
dime si AAPL baja de 180 usd
muéstrame acciones de menos de 20 dólares
show me stocks under $5
i missed the move from 40 to 60 dollars
my alert at $95 never fired
mi alerta de 1,500 pesos no sonó
can you explain why gold hit $4,000 to me
necesito un bróker con mínimo de 100 dólares
me cobraron 35 dólares de comisión
the app charged me $4.99
we saw spx at 6k today
i read that openai raised 40 billion
en mi país el salario mínimo es de 9 mil pesos
my country's gdp is 500 billion
me llegó un correo de la orden 88213-A
my ticket number is 771203
mi número de pedido: 5520-1182
mi folio 229183 sigue abierto
my phone is 555 019 2233
mi cel 33 1188 2290 por si acaso
i'm 34 and live in austin
tengo 41 años y 2 hijos
i get up at 6:30 for the open
llevo 3 años operando
i've been trading for 5 years
mi horizonte es de 10 años
tengo un 60/40 de perfil
mi cartera ideal: 60% acciones 40% bonos
my portfolio should be 70% stocks
i only trade the 5 min and 15 min
my favourite is the 21 ema
mi indicador favorito es el RSI de 14
my max loss per trade is $50
mi pérdida máxima es de 500 pesos por operación
my target on amd is $180
mi precio objetivo es 45 pesos
i'd pay $30 for that stock at most
no pagaría más de 90 pesos por esa acción
el hotel me sale en 1,800 pesos la noche
my hotel was $140 a night
una pizza me costó 200 pesos
i was born in 1990
mi nivel de riesgo es 3 de 5
we meet at 10:15 on the 4th
me recuerdas el 20 de enero a las 8
tell me when spy is at $600
avísame si llega a 50,000 pesos
quiero una alerta de bitcoin en 90 mil dólares
my watchlist: aapl, msft, 3 etfs
cuál es mi límite diario?
how much can i withdraw per day, 5,000?
¿cuánto puedo retirar al día, 10 mil pesos?
is my money insured up to $250,000?
el fondo de garantía cubre 100.000 euros
fscs covers £85,000 per bank
the ipps cubre 400 mil udis
el código está en github
i wrote 200 lines of code
mi código de python tarda 3 segundos
code 200 from the api
the pin 4 connector
key dates: 12/10, 12/18
la pregunta es 5 o 6
which 3 banks pay most
el banco central subió a 11%
bank of america target 52
the bank index at 120
cuenta con 300 sucursales
cuéntame del 2008
a cuenta de qué subió 4%?
on account of 3 rate cuts
checking 4 charts now
i'm checking if 200 dma held
savings rate hit 4.6%
el ahorro interno es 20% del pib
credit spreads at 300 bps
debit spread 2.5 wide
credit spread 150/145
visa waiver for 90 days
my visa interview is at 10
tarjeta amarilla al minuto 35
card game with 52 cards
master 12 patterns in 30 days
mi máster costó 8.000 euros
RUN backtest 2020-2024
run it with 10000 simulations
tin prices 31000
doc 12 says otherwise
cc 500 index?
dl 5.2 of the app
el banco sube la tasa a 5.50
i bought the dip lol, is 180 the floor
compré puts? no, pensaba en strike 400
my broker is down since 9:30
mi cuenta está bloqueada desde las 3
mi tarjeta vence en 2027
my card expires in march 2026
la cuenta premium cuesta 99 pesos
the pro account is $12 a month
i need 3 confirmations on the pin
paga 3 dólares de dividendo anual
it pays a $2 dividend
¿cuánto vale un lote de 100 acciones de KO?
sofi got approved, went up 12%
entró al índice en 2021
entre 40 y 45 pesos compro
está entre 1.05 y 1.10
10 acciones de KO dan 19 dólares al año?
un amigo perdió 3 mil dólares
my neighbor lost 40k on ftx
warren owns 400 million shares of KO
apple owes 100 billion in bonds
how do I get my tax number?
dónde veo mi RFC en la app
is my SSN safe with you
no compartas tu NIP
la CLABE tiene 18 dígitos
iban format in spain is 24 chars
el cvv está atrás?
mi ganancia esperada es de 10%
what's a realistic gain, 8% a year
tesla made 4 billion last quarter
up 3% premarket
down 2% today, why
lost connection 3 times
how much is 1 lot worth in dollars
el stop de mi posición está en 44
cuál sería mi ganancia si sube a 60
what's my break even if i buy at 50 and sell 55 calls
el lote mínimo es 0.01
dame 100 dólares en pesos
convert 250 usd to mxn
a cuánto equivalen 500 euros
remind me about the 3pm meeting
vivo en la calle 45 número 1220
mi código de cliente VIP no jala
i'm on version 5.1
i'm at chapter 3 of the course
estoy en el nivel 2
i'm in london until 2027
me salieron 3 velas rojas
i get 15 min delayed quotes
i hold trades for 3 days
i make 2 trades a week
hago 5 operaciones al día
gano en 6 de 10 operaciones
pierdo 4 de cada 10
saco 7 en el examen
my strategy made 12% in backtests
un fondo indexado rinde 8%
si tuviera 10 mil dólares compraría oro
if i'd bought 100 shares in 2010
how many shares can i buy with $300
mándame el reporte 10-Q
the 52 week high is 188.11
mi broker favorito es el 2 de la lista
el volumen de hoy: 1,204,500
CPI at 8:30, fomc at 2
my account was created in 2022
mi cuenta lleva 3 días bloqueada
the card fee is 2.5%
comisión por transferencia de 5 pesos
price of brent 74.20, wti 70.11
¿qué tal 40 dólares para el crudo?
earnings per share came at 1.64
google compró wiz por 32 mil millones de dólares
my age is 45, retire at 65
retirarme a los 60 con tranquilidad
"""

_LABEL = re.compile(r"\[\[(.*?)\]\]")


def _lines(block: str) -> list[str]:
    return [line for line in block.strip().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("line", [line for line in _lines(SENSITIVE) if "[[" in line])
def test_rf_33_a_10_c_16_what_is_in_brackets_is_taken_out(line: str) -> None:
    text = unicodedata.normalize("NFC", line.replace("[[", "").replace("]]", ""))
    covered = {place for span in find_sensitive(text) for place in range(span.start, span.end)}
    assert _secret_places(unicodedata.normalize("NFC", line)) <= covered


@pytest.mark.parametrize("line", _lines(HARMLESS))
def test_rf_33_what_is_not_the_users_stays(line: str) -> None:
    assert [line[span.start : span.end] for span in find_sensitive(line)] == []


def _secret_places(line: str) -> set[int]:
    """Letters and digits between brackets, as offsets of the text without brackets."""
    places: set[int] = set()
    for count, match in enumerate(_LABEL.finditer(line)):
        start = match.start(1) - 4 * count - 2
        places |= {start + offset for offset, char in enumerate(match[1]) if char.isalnum()}
    return places
